package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// keptReplies keeps what it is given, as the store does, unless its context has ended.
type keptReplies struct{ kept record.Reply }

func (k *keptReplies) TakeKey(context.Context, string, string, string, time.Duration) (record.Reply, error) {
	return k.kept, nil
}

func (k *keptReplies) KeepReply(ctx context.Context, _, _ string, reply record.Reply) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("it may wait for good")
	}
	k.kept = reply
	return nil
}

// A caller that goes away before it has the answer is the one who asks again.
func TestTheAnswerIsKeptThoughItsCallerIsGone(t *testing.T) {
	replies := &keptReplies{}
	k := idempotency{replies, httpx.Env{Log: slog.New(slog.DiscardHandler), Redact: func(s string) string { return s }}}
	ctx, leave := context.WithCancel(t.Context())
	req := &httpx.Request{Request: httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/prs", nil)}
	done := 0
	open := func() (httpx.Response, error) {
		done++
		leave()
		return httpx.Response{Status: http.StatusCreated, Value: map[string]int{"number": 7}}, nil
	}
	for range 2 {
		a, err := k.once(req, "k", nil, func(err error) error { return err }, open)
		if err != nil || a.Status != http.StatusCreated || done != 1 {
			t.Errorf("%+v, %v, done %d times", a, err, done)
		}
	}
}
