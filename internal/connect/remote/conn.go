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

	"github.com/claudeops/claudeops/internal/connect"
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
	ended bool       // nothing more is sent
}

var errEnded = errors.New("nothing more can be sent on this connection")

// Read implements io.Reader.
func (c *conn) Read(p []byte) (int, error) { return c.events.Read(p) }

// Write implements io.Writer. It returns when the server has taken p.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := 0
	for written < len(p) {
		if c.ended {
			return written, errEnded
		}
		chunk := p[written:min(len(p), written+MaxChunk)]
		if err := c.deliver(chunk, false); err != nil {
			return written, err
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
			_ = c.deliver(nil, true) // an error has ended the connection
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

// deliver sends a chunk until the server says that it has it. An error ends the connection: what the server has of the chunk is not known.
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
		if err != nil && errors.As(err, &refused) && !refused.Retry || ctx.Err() != nil && err != nil {
			c.cancel(err)
			return err
		}
		if err == nil {
			return nil
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
