package web

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/records"
)

const (
	// keptFor is the maximum age of a cached answer: times in words may be that old, and so may everything else that is
	// not in the records.
	keptFor = 10 * time.Second
	// maxKept bounds the answers that are kept, and maxKeptBytes their bytes. Beyond it, all are dropped.
	maxKept, maxKeptBytes = 64, 8 << 20
)

// kept keeps answers that are made of the records alone, as long as nothing was recorded since. It is asked behind the
// guard, and keeps answers for each caller apart.
type kept struct {
	changes records.Changes // nil where nothing is kept
	health  *health.Checker
	env     handler.Env

	mu      sync.Mutex
	answers map[keptKey]handler.Response
	bytes   int
}

// keptKey is all that an answer depends on.
type keptKey struct {
	version  string // of the records
	slice    int64  // of the time
	verified time.Time
	health   int64 // version of how the server is
	redacted int64 // what is kept out of it; see handler.Env
	pattern  string
	query    string
	caller   string
}

// keeps reports whether the answers of a route may be kept: they are made of records, rules and time, and of who asks.
func keeps(route handler.Route) bool {
	switch route.Method + " " + route.Pattern {
	case "GET /{$}", "GET /changes", "GET /api/v1/proposals":
		return true
	}
	return false
}

// answer returns the handler's answer, from the cache if nothing has changed since.
func (k *kept) answer(req *handler.Request, handle handler.Func) (handler.Response, error) {
	key, known := k.key(req.Context(), req)
	if !known {
		return k.made(req, handle)
	}
	k.mu.Lock()
	answer, found := k.answers[key]
	k.mu.Unlock()
	if found {
		return answer, nil
	}
	answer, err := k.made(req, handle)
	if err != nil || answer.Stream != nil || answer.Status > 200 {
		return answer, err
	}
	if answer.Bytes == nil && answer.Value != nil {
		answer.Bytes, answer.ContentType = handler.EncodeJSON(answer.Value), "application/json"
	}
	k.keep(key, answer)
	return answer, nil
}

// made returns the handler's answer from the present records. The health is read first: doctor writes to the records,
// which a call that holds a view of them cannot do.
func (k *kept) made(req *handler.Request, handle handler.Func) (answer handler.Response, err error) {
	if k.changes == nil {
		return handle(req)
	}
	k.health.Now(req.Context())
	err = k.changes.View(req.Context(), func(ctx context.Context) error {
		viewing := *req
		viewing.Request = req.WithContext(ctx)
		answer, err = handle(&viewing)
		return err
	})
	return answer, err
}

// key is computed before the answer is made, so that records made meanwhile invalidate it.
func (k *kept) key(ctx context.Context, req *handler.Request) (keptKey, bool) {
	if k.changes == nil {
		return keptKey{}, false
	}
	version, known := k.changes.Version(ctx)
	state, err := k.health.Version(ctx)
	redacted := int64(0)
	if k.env.Redaction != nil {
		redacted = k.env.Redaction()
	}
	return keptKey{
		version: version, slice: k.env.Now().UnixNano() / int64(keptFor), verified: k.health.LastVerification().At,
		health: state, redacted: redacted,
		pattern: req.Pattern, query: req.URL.RawQuery,
		caller: fmt.Sprintf("%+v", req.Principal),
	}, known && err == nil
}

func (k *kept) keep(key keptKey, answer handler.Response) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := len(answer.Bytes)
	if size > maxKeptBytes/8 {
		return
	}
	if k.answers == nil || len(k.answers) >= maxKept || k.bytes+size > maxKeptBytes {
		k.answers, k.bytes = map[keptKey]handler.Response{}, 0
	}
	if _, has := k.answers[key]; !has {
		k.bytes += size
	}
	k.answers[key] = answer
}
