package connector

import (
	"context"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect/remote"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// send takes what a client says.
func (c *Connector) send(req *handler.Request) (handler.Response, error) {
	if c.options.Tokens == nil {
		return handler.Response{}, fault.New(fault.NotFound, "no agents are let in here")
	}
	secret, refused := c.credential(req)
	if refused != nil {
		return handler.Response{}, c.refuse(req, refused)
	}
	conn, foreign := c.find(req.PathValue("connection"), secret)
	if conn == nil {
		return handler.Response{}, c.unknown(req, secret, foreign)
	}
	var q sendParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), c.options.Limits.Wait)
	defer cancel()
	select {
	case conn.turn <- struct{}{}:
		defer func() { <-conn.turn }()
	case <-ctx.Done():
		return handler.Response{}, notReadYet()
	}
	if err := conn.take(ctx, req, q); err != nil {
		return handler.Response{}, err
	}
	return handler.Response{Status: http.StatusNoContent}, nil
}

// unknown is the error for the id of a connection that is none of the caller's: they learn no more than that.
func (c *Connector) unknown(req *handler.Request, secret string, foreign bool) error {
	from := c.options.Guard.Client(req.Request)
	if _, refused := c.options.Tokens.Check(req.Context(), secret, way, from); refused != nil {
		return c.count(req, refused)
	}
	e := over()
	if foreign {
		c.options.Tokens.Refused(req.Context(), way, from, fault.New(e.Code, "the connection was opened with another token"))
	}
	return e
}

func over() *fault.Error {
	return fault.New(fault.NotFound, "this token has no such connection, or it is over; open another one")
}

// notReadYet is the refusal of what comes faster than it is read.
func notReadYet() *fault.Error {
	e := fault.New(fault.LimitReached, "what was sent before is not read yet; send it again")
	e.RetryAfter = time.Second
	return e
}

// take takes a request of the next number; one that was taken already is done. The turn is the caller's.
func (c *connection) take(ctx context.Context, req *handler.Request, q sendParams) error {
	switch {
	case q.Seq <= c.seq:
		return nil
	case q.Seq > c.seq+1:
		return fault.New(fault.Conflict, "the request %d is missing", c.seq+1)
	}
	chunk, err := handler.ReadBody(req, remote.ChunkType)
	if err != nil {
		return err
	}
	switch c.in.give(ctx, chunk) {
	case given:
	case full:
		return notReadYet()
	case closed:
		return over()
	}
	c.seq = q.Seq
	if q.Last {
		c.in.end()
	}
	return nil
}
