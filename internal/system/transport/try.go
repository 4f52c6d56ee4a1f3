package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// failure is a try without an answer.
type failure struct {
	fault  *fault.Error
	unsent bool // certain: the server never saw the request
	broken bool // the connection or the answer broke; another try may fare better
}

// try sends the request once and reads the answer.
func (t *Transport) try(c *call) (*http.Response, *failure) {
	parent := c.req.Context()
	var failed *failure
	if c.token, failed = t.token(c); failed != nil { // before a slot is taken: getting a token may take one
		return nil, failed
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-parent.Done():
		return nil, &failure{fault: t.ended(context.Cause(parent))}
	}
	limits, end := t.withDeadline(parent, c)
	defer end()
	resp, err := t.http.RoundTrip(t.prepare(limits.ctx, c))
	limits.answered()
	if err != nil {
		return nil, t.classify(parent, limits, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, t.opt.Limits.MaxBody+1))
	if err != nil {
		return nil, t.classify(parent, limits, err)
	}
	if int64(len(body)) > t.opt.Limits.MaxBody {
		return nil, &failure{fault: fault.New(fault.UpstreamError,
			"the answer of %s is larger than %d bytes and was not read", t.opt.Base.Host, t.opt.Limits.MaxBody)}
	}
	return t.finish(c, resp, body), nil
}

// prepare makes the request that is sent: the caller's, with our headers and a body that can be read.
func (t *Transport) prepare(ctx context.Context, c *call) *http.Request {
	out := c.req.Clone(ctx)
	out.Host, out.URL.User = "", nil // neither may point elsewhere or carry a password
	// A caller's Authorization never goes out; Accept-Encoding is net/http's affair, which undoes what it asks for; and an
	// idempotency key would make net/http repeat a write by itself.
	for _, name := range []string{"Authorization", "Accept-Encoding", "Idempotency-Key", "X-Idempotency-Key"} {
		out.Header.Del(name)
	}
	if c.token != "" {
		out.Header.Set("Authorization", t.opt.Scheme+" "+c.token)
	}
	if t.opt.UserAgent != "" {
		out.Header.Set("User-Agent", t.opt.UserAgent)
	}
	out.Body, out.GetBody, out.ContentLength, out.TransferEncoding = nil, nil, 0, nil
	if len(c.body) > 0 {
		// With GetBody net/http moves a write to another connection only when nothing of it has been sent.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
		out.Body, _ = out.GetBody() // cannot fail
		out.ContentLength = int64(len(c.body))
	}
	return out
}

// finish makes the answer that the caller sees.
func (t *Transport) finish(c *call, resp *http.Response, body []byte) *http.Response {
	if c.toForge {
		t.noteRemaining(resp.Header)
	}
	resp.Request = c.req // not ours, which holds the token
	resp.Body = memory{bytes.NewReader(body)}
	if c.req.Method != http.MethodHead {
		resp.ContentLength = int64(len(body))
	}
	return resp
}

// noteRemaining remembers what the forge says about its limit.
func (t *Transport) noteRemaining(h http.Header) {
	if n, err := strconv.Atoi(h.Get("X-Ratelimit-Remaining")); err == nil && n >= 0 {
		t.remaining.Store(int64(n) + 1)
	}
}

// Remaining returns how many requests the forge last said are left in its current window. known is false until it has
// said so.
func (t *Transport) Remaining() (remaining int, known bool) {
	n := t.remaining.Load()
	return int(max(0, n-1)), n > 0
}

// memory is a body that has been read.
type memory struct{ *bytes.Reader }

// Close implements io.Closer; there is nothing to close.
func (memory) Close() error { return nil }
