package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
)

// Pauses between two attempts to send the same.
const (
	firstPause   = 50 * time.Millisecond // doubled each time
	longestPause = 2 * time.Second
)

// conn is a connection after its handshake; see connect.Conn.
type conn struct {
	client *http.Client
	at     *url.URL
	send   *url.URL
	token  string
	limits Limits
	events *events
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc

	mu    sync.Mutex // held while something is sent
	seq   int        // of the last request
	most  int        // bytes of a request; a proxy may take less than MaxChunk
	ended bool       // nothing more is sent
}

// leastChunk is what a request may always have, in bytes.
const leastChunk = 4 << 10

// errTooLarge is a body that a proxy does not pass on, so that the server has nothing of it.
var errTooLarge = errors.New("a proxy in front of the server takes no bodies of 4 KiB (413); it has to take those of 256 KiB (nginx: client_max_body_size)")

var errEnded = errors.New("nothing more can be sent on this connection")

// Read implements io.Reader. An error says why the connection ended, if that is known.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.events.Read(p)
	if cause := context.Cause(c.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Write implements io.Writer. It returns when the server has taken p.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := 0
	for written < len(p) {
		if c.ended {
			return written, errEnded
		}
		chunk := p[written:min(len(p), written+c.most)]
		err := c.deliver(chunk, false)
		if errors.Is(err, errTooLarge) && len(chunk) > leastChunk {
			c.most = max(len(chunk)/2, leastChunk)
			continue
		}
		if err != nil {
			return written, c.failed(err)
		}
		written += len(chunk)
	}
	return written, nil
}

// CloseWrite implements connect.Conn. It does not wait for the server.
func (c *conn) CloseWrite() error {
	go func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.ended {
			c.ended = true
			if err := c.deliver(nil, true); err != nil {
				_ = c.failed(err)
			}
		}
	}()
	return nil
}

// Close implements io.Closer.
func (c *conn) Close() error {
	c.cancel(io.ErrClosedPipe)
	c.client.CloseIdleConnections()
	if c.events != nil {
		return c.events.close()
	}
	return nil
}

// failed ends the connection: what the server has of what was sent last is not known.
func (c *conn) failed(err error) error {
	c.cancel(err)
	return err
}

// deliver sends a chunk until the server says that it has it. After an error it is not known what the server has of the chunk, but for errTooLarge:
// then it has nothing, and the number is free for less.
func (c *conn) deliver(chunk []byte, last bool) error {
	c.seq++
	at := *c.send
	at.RawQuery = "seq=" + strconv.Itoa(c.seq)
	if last {
		at.RawQuery += "&last=true"
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.limits.Send)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := c.attempt(ctx, &at, chunk)
		var refused *connect.RefusedError
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errTooLarge) && pause == firstPause: // an earlier attempt may have come through otherwise
			c.seq--
			return err
		case errors.As(err, &refused) && !refused.Retry, ctx.Err() != nil:
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// attempt sends a chunk once. The server may have it though there is an error.
func (c *conn) attempt(ctx context.Context, at *url.URL, chunk []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Request)
	defer cancel()
	answer, err := c.do(ctx, at, ChunkType, chunk)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusNoContent {
		return nil
	}
	return refusal(answer, c.at)
}
