package transport

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/weborigin"
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
	c := &call{req: req, safe: isSafe(req), repeatable: isRepeatable(req), toForge: weborigin.Same(req.URL, t.opt.Base)}
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
			return nil, t.ended(context.Cause(ctx))
		}
		defer done()
	}
	for {
		c.tries++
		resp, failed := t.try(c)
		wait, again := t.retry(c, resp, failed)
		switch {
		case again && t.pause(ctx, wait):
		case again:
			return nil, t.ended(context.Cause(ctx))
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
		slog.String("path", t.scrub.text(c.req.URL.EscapedPath())),
		slog.Int("tries", c.tries),
		slog.Duration("took", took),
	}
	if !c.toForge {
		attrs = append(attrs, slog.String("host", t.scrub.text(c.req.URL.Host)))
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
