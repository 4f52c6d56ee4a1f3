// Package transport is the only way out by HTTP.
//
// A Client asks hosts that the operator has named: registries, webhooks, sinks. It sends each its own credential, or
// none, follows redirects to named hosts alone, and reads answers within bounds. Its connections are a Pool's, which
// keeps it from private addresses.
//
// A Transport is the HTTP side of every adapter that speaks to a forge: one http.RoundTripper that knows when a
// request may be repeated, where the token may go, how long to wait and how much to read.
//
// An adapter hands Client to its library, makes its own URLs with URL, marks GraphQL queries with Safe, and turns what
// comes back into faults with Failure (no answer) and StatusFault (an answer that means the same at every forge).
//
// What a caller of a Transport can rely on:
//
//   - The token goes to the origin (scheme, host, port) of Options.Base and nowhere else. Redirects that leave the
//     origin are errors. No error and no log line holds the token in any common encoding.
//   - A write is sent once, unless it is certain that the server has not acted: the connection was not accepted, or the
//     server refused the request for coming too early, or for a token that has been replaced. Reads, and writes that
//     are marked with Repeatable, are repeated a few times.
//   - Writes of one Transport go one after the other, as GitHub asks of its clients.
//   - An answer is read in full, within bounds, before RoundTrip returns: bodies do not fail afterwards.
package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Transport carries the requests of one adapter to one forge. It is safe for concurrent use and does nothing before the
// first request.
type Transport struct {
	opt       Options
	http      *http.Transport
	slots     chan struct{} // holds one for each request under way
	writer    writeLock
	scrub     *scrubber
	remaining atomic.Int64 // last x-ratelimit-remaining plus one; 0: none seen
}

// idleFor is how long an unused connection is kept. It is shorter than servers and address translators on the way
// allow, so that a write seldom meets a connection that the other side is just closing.
const idleFor = 30 * time.Second

// New makes a Transport. The error is a *fault.Error: provider_disabled that names the variable to correct.
func New(o Options) (*Transport, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	base := *o.Base
	o.Base = &base
	carrier := connections(o.Network, o.Limits, func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: o.Limits.Dial}).DialContext(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	})
	carrier.MaxIdleConnsPerHost, carrier.MaxResponseHeaderBytes = o.Limits.MaxConcurrent, 1<<20
	carrier.OnProxyConnectResponse = checkProxy
	scrub := newScrubber()
	scrub.learn(o.Token)
	return &Transport{
		opt:    o,
		http:   carrier,
		slots:  make(chan struct{}, o.Limits.MaxConcurrent),
		writer: newWriteLock(),
		scrub:  scrub,
	}, nil
}

// Client returns a client that sends by t and follows redirects by the rules of this package.
func (t *Transport) Client() *http.Client { return t.ClientOver(t) }

// ClientOver is Client with what sees each request and answer; it must pass them on to t.
func (t *Transport) ClientOver(over http.RoundTripper) *http.Client {
	return &http.Client{Transport: over, CheckRedirect: t.checkRedirect}
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.http.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper. The error is always a *fault.Error; what it is given by an http.Client is
// wrapped by that, and Failure finds it again. The answer's body is in memory, at most Limits.MaxBody bytes, and can be
// rewound (io.Seeker).
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	started := t.opt.Clock.Now()
	c := &call{req: req, safe: isSafe(req), repeatable: isRepeatable(req), toForge: SameOrigin(req.URL, t.opt.Base)}
	resp, failed := t.exchange(c)
	took := t.opt.Clock.Now().Sub(started)
	t.logRequest(c, resp, failed, took)
	t.opt.Observe(outcome(resp, failed), took)
	if failed != nil {
		return nil, failed
	}
	return resp, nil
}

// call is one request with what its tries share.
type call struct {
	req     *http.Request // the caller's; never changed
	body    []byte
	safe    bool // a read
	toForge bool // goes to our forge and carries the token
	tries   int

	repeatable bool   // may be repeated; every read may
	token      string // of the last try
	renewed    bool   // a refused token was given back already
}

// exchange tries until there is an answer or a failure that is final.
func (t *Transport) exchange(c *call) (*http.Response, *fault.Error) {
	ctx := c.req.Context()
	if err := c.readBody(); err != nil {
		return nil, fault.Wrap(t.scrub.err(err), fault.Internal, "the request to %s could not be made", t.opt.Name)
	}
	if !c.safe {
		done, ok := t.startWrite(ctx)
		if !ok {
			return nil, t.contextFault(context.Cause(ctx))
		}
		defer done()
	}
	for {
		c.tries++
		resp, failed := t.sendOnce(c)
		wait, again := t.retry(c, resp, failed)
		switch {
		case again && t.pause(ctx, wait):
		case again:
			return nil, t.contextFault(context.Cause(ctx))
		case failed != nil:
			return nil, failed.fault
		default:
			return resp, nil
		}
	}
}

// pause waits for d and says whether ctx still stands.
func (t *Transport) pause(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		t.opt.Clock.Sleep(ctx, d)
	}
	return ctx.Err() == nil
}

// readBody takes the request's body into memory, so that each try can send it from its beginning.
func (c *call) readBody() error {
	if c.req.Body == nil || c.req.Body == http.NoBody {
		return nil
	}
	defer c.req.Body.Close()
	var buf bytes.Buffer
	_, err := io.Copy(&buf, c.req.Body)
	c.body = buf.Bytes()
	return err
}

// outcome returns one of a few words: 2xx, 3xx, 4xx or 5xx for an answer, and the code of the fault where there was
// none.
func outcome(resp *http.Response, failed *fault.Error) string {
	if failed != nil {
		return string(failed.Code)
	}
	return strconv.Itoa(resp.StatusCode/100) + "xx"
}

// logRequest writes the log line of a request.
func (t *Transport) logRequest(c *call, resp *http.Response, failed *fault.Error, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("provider", t.opt.Name),
		slog.String("method", c.req.Method),
		slog.String("path", t.scrub.scrub(c.req.URL.EscapedPath())),
		slog.Int("tries", c.tries),
		slog.Duration("took", took),
	}
	if !c.toForge {
		attrs = append(attrs, slog.String("host", t.scrub.scrub(c.req.URL.Host)))
	}
	if resp != nil {
		attrs = append(attrs, slog.Int("status", resp.StatusCode), slog.String("upstream_request_id", t.requestID(resp)))
	}
	if failed != nil {
		attrs = append(attrs, slog.String("code", string(failed.Code)))
	}
	if failed != nil && failed.Cause != nil {
		attrs = append(attrs, slog.String("cause", failed.Cause.Error())) // scrubbed, as every cause is here
	}
	t.opt.Log.LogAttrs(c.req.Context(), slog.LevelDebug, "request to forge", attrs...)
}

// tryFailure is a try without an answer.
type tryFailure struct {
	fault  *fault.Error
	unsent bool // certain: the server never saw the request
	broken bool // the connection or the answer broke; another try may fare better
}

// sendOnce sends the request once and reads the answer.
func (t *Transport) sendOnce(c *call) (*http.Response, *tryFailure) {
	parent := c.req.Context()
	var failed *tryFailure
	if c.token, failed = t.requestToken(c); failed != nil { // before a slot is taken: getting a token may take one
		return nil, failed
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-parent.Done():
		return nil, &tryFailure{fault: t.contextFault(context.Cause(parent))}
	}
	limits, end := t.withDeadline(parent, c)
	defer end()
	resp, err := t.http.RoundTrip(t.newRequest(limits.ctx, c))
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
		return nil, &tryFailure{fault: fault.New(fault.UpstreamError,
			"the answer of %s is larger than %d bytes and was not read", t.opt.Base.Host, t.opt.Limits.MaxBody)}
	}
	return t.finishResponse(c, resp, body), nil
}

// newRequest makes the request that is sent: the caller's, with our headers and a body that can be read.
func (t *Transport) newRequest(ctx context.Context, c *call) *http.Request {
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

// finishResponse makes the answer that the caller sees.
func (t *Transport) finishResponse(c *call, resp *http.Response, body []byte) *http.Response {
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

type (
	safeKey       struct{}
	repeatableKey struct{}
)

// Safe marks the POST requests made with the context as reads, such as a GraphQL query: they may be repeated and do not
// wait for writes. Other methods mean what they mean.
func Safe(ctx context.Context) context.Context { return context.WithValue(ctx, safeKey{}, true) }

// Repeatable marks the writes made with the context as ones that may be made twice without harm, such as putting a
// label on. They are repeated where a read would be, and like every write wait for others to end.
func Repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

func isRepeatable(req *http.Request) bool {
	marked, _ := req.Context().Value(repeatableKey{}).(bool)
	return marked || isSafe(req)
}

func isSafe(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		marked, _ := req.Context().Value(safeKey{}).(bool)
		return marked
	default:
		return false
	}
}

// retry says whether the request is tried once more, and how long to wait before.
//
// A safe or repeatable request is, when the connection or the answer broke, when a gateway says that the server cannot
// be reached just now and when the server asks to come back; a safe one also when the server failed (500). Another
// write is only when it cannot have acted: it was never sent, or the server turned it away for a time or for its token,
// in whose place there is another.
func (t *Transport) retry(c *call, resp *http.Response, failed *tryFailure) (time.Duration, bool) {
	limits := t.opt.Limits
	if resp != nil && resp.StatusCode == http.StatusUnauthorized && t.renewToken(c) {
		return 0, true
	}
	if c.tries > limits.Retries {
		return 0, false
	}
	backoff := t.opt.Clock.Jitter(limits.RetryWait << min(c.tries-1, 10))
	if failed != nil {
		return backoff, failed.unsent || failed.broken && c.repeatable
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusForbidden:
		wait, known := limitWait(resp.Header, t.opt.Clock.Now())
		return wait, known && wait <= limits.MaxRetryAfter
	case http.StatusInternalServerError:
		return backoff, c.safe
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if wait, known := retryAfter(resp.Header, t.opt.Clock.Now()); known {
			return wait, c.repeatable && wait <= limits.MaxRetryAfter
		}
		return backoff, c.repeatable
	default:
		return 0, false
	}
}

// longestWait caps what a header can make us say, in an answer or a wait.
const longestWait = 24 * time.Hour

// retryAfter reads Retry-After: seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) (wait time.Duration, known bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(longestWait/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return until(at, now), true
}

// limitWait returns how long to wait by the headers of a refusal: Retry-After, or the end of an exhausted rate limit's
// window. known is false without such headers; the refusal then has another reason.
func limitWait(h http.Header, now time.Time) (wait time.Duration, known bool) {
	if wait, known = retryAfter(h, now); known {
		return wait, true
	}
	if h.Get("X-Ratelimit-Remaining") != "0" {
		return 0, false
	}
	reset, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64)
	if err != nil {
		return 0, false
	}
	return until(time.Unix(reset, 0), now), true
}

// until returns the time from now to at in whole seconds, rounded up, between 0 and longestWait.
func until(at, now time.Time) time.Duration {
	d := min(max(at.Sub(now), 0), longestWait)
	return (d + time.Second - 1).Truncate(time.Second)
}

// deadline is a try's context with the limits of its kind.
type deadline struct {
	ctx      context.Context
	whole    time.Duration // that the try may take
	answered func()        // the header is there: from now on only whole counts
}

// errNoHeader ends a read whose answer did not begin in time.
var errNoHeader = errors.New("no header in time")

// withDeadline bounds one try. A write is only bounded as a whole: a slow server cannot be distinguished from a dead
// one, and after an early end the outcome of the write would be unknown.
func (t *Transport) withDeadline(parent context.Context, c *call) (deadline, context.CancelFunc) {
	if !c.safe {
		ctx, cancel := t.opt.Clock.Limit(parent, t.opt.Limits.Write)
		return deadline{ctx, t.opt.Limits.Write, func() {}}, cancel
	}
	whole, end := t.opt.Clock.Limit(parent, t.opt.Limits.Whole)
	ctx, cancel := context.WithCancelCause(whole)
	var answered atomic.Bool
	// It is set when the request has been sent; until then the whole is the limit.
	timer := time.AfterFunc(2*t.opt.Limits.Whole, func() {
		if !answered.Load() {
			cancel(errNoHeader)
		}
	})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { timer.Reset(t.opt.Limits.ResponseHeader) },
	})
	return deadline{ctx, t.opt.Limits.Whole, func() { answered.Store(true); timer.Stop() }}, func() {
		timer.Stop()
		cancel(nil)
		end()
	}
}

// writeLock lets one writer in at a time. Unlike a mutex it can be waited for with a context.
type writeLock struct {
	free chan time.Time // holds when the last write ended, while no write runs
}

func newWriteLock() writeLock {
	l := writeLock{free: make(chan time.Time, 1)}
	l.free <- time.Time{}
	return l
}

// lock waits for the writer before and returns when the last write ended; ok is false if ctx ended first.
func (l writeLock) lock(ctx context.Context) (last time.Time, ok bool) {
	select {
	case last = <-l.free:
		return last, true
	case <-ctx.Done():
		return time.Time{}, false
	}
}

// unlock lets the next writer in.
func (l writeLock) unlock(ended time.Time) { l.free <- ended }

// startWrite waits until the request may write: for the writer before it and for Limits.WritePause. ok is false if ctx
// ended first. If it is true, done must be called when the write is over.
func (t *Transport) startWrite(ctx context.Context) (done func(), ok bool) {
	last, ok := t.writer.lock(ctx)
	if !ok {
		return nil, false
	}
	rest := time.Duration(0)
	if !last.IsZero() {
		rest = t.opt.Limits.WritePause - t.opt.Clock.Now().Sub(last)
	}
	if !t.pause(ctx, rest) {
		t.writer.unlock(last)
		return nil, false
	}
	return func() { t.writer.unlock(t.opt.Clock.Now()) }, true
}
