package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/records"
)

// idempotency gives an answer again to who repeats a request under an Idempotency-Key.
type idempotency struct {
	replies records.Replies
	env     handler.Env
}

// Bounds of an Idempotency-Key: how long it is remembered, how long its answer may take to be kept, and how long it may
// be, in bytes.
const (
	keyLifetime = 24 * time.Hour
	keepFor     = 30 * time.Second
	maxKey      = 255
)

func idempotencyKey(req *handler.Request) (string, error) {
	given := req.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return "", nil
	}
	printable := func(b byte) bool { return b > ' ' && b < 0x7f }
	if len(given) > 1 || len(given[0]) == 0 || len(given[0]) > maxKey ||
		slices.ContainsFunc([]byte(given[0]), func(b byte) bool { return !printable(b) }) {
		return "", fault.New(fault.InvalidArgument, "Idempotency-Key must be 1 to %d visible ASCII characters, once", maxKey)
	}
	return given[0], nil
}

// once does something under an Idempotency-Key: what was answered to the same body before is answered again. Only
// success is: a refusal may be different by now. refused records a key that is not good for the body.
func (k *idempotency) once(
	req *handler.Request, key string, body []byte, refused func(error) error, do func() (handler.Response, error),
) (handler.Response, error) {
	if key == "" {
		return do()
	}
	sum := sha256.Sum256(body)
	owner := handler.Key(req.Principal.Actor)
	reply, err := k.replies.TakeKey(req.Context(), owner, key, hex.EncodeToString(sum[:]), keyLifetime)
	if err != nil {
		return handler.Response{}, refused(err)
	}
	if reply.Status != 0 {
		return handler.Response{Status: reply.Status, Bytes: reply.Body, ContentType: "application/json",
			Header: http.Header{"Idempotency-Replayed": {"true"}}}, nil
	}
	a, err := do()
	if err != nil {
		return handler.Response{}, err
	}
	a.Bytes, a.ContentType = handler.EncodeJSON(a.Value), "application/json"
	keeping, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), keepFor) // the caller may be gone
	defer cancel()
	if err := k.replies.KeepReply(keeping, owner, key, record.Reply{Status: a.Status, Body: a.Bytes}); err != nil {
		k.env.Log.Warn("answer not kept for its Idempotency-Key", "request_id", req.ID, "error",
			k.env.Redact(handler.Cause(err)))
	}
	return a, nil
}
