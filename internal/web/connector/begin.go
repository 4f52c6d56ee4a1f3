package connector

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/connect/remote"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// connection is one that is open.
type connection struct {
	id    string
	token [sha256.Size]byte // hash of that which opened it
	in    *inbox
	turn  chan struct{} // holds one: whoever takes it, sends
	seq   int           // of the last request that was taken; guarded by turn
}

// begin opens a connection. Its answer lasts as long as that does.
func (c *Connector) begin(req *handler.Request) (handler.Response, error) {
	if c.options.Tokens == nil {
		return handler.Response{}, fault.New(fault.NotFound, "no agents are let in here")
	}
	secret, refused := c.credential(req)
	if refused != nil {
		return handler.Response{}, c.refuse(req, refused)
	}
	hello, err := readHello(req)
	if err != nil {
		return handler.Response{}, err
	}
	hello.Ticket = secret
	if !c.options.Tokens.Enter() {
		return handler.Response{}, fault.New(fault.LimitReached, "too many agents are connected")
	}
	arrival, done, refused := c.options.Tokens.Admit(req.Context(), hello, way, c.options.Guard.Client(req.Request))
	if refused != nil {
		c.options.Tokens.Leave()
		return handler.Response{}, c.count(req, refused)
	}
	req.Principal.Name = arrival.Credential // for the log
	conn := &connection{
		id: rand.Text() + rand.Text(), token: sha256.Sum256([]byte(secret)), in: newInbox(), turn: make(chan struct{}, 1),
	}
	return handler.Response{
		ContentType: remote.EventsType, Header: http.Header{"X-Accel-Buffering": {"no"}},
		Stream: func(w io.Writer) error {
			defer c.options.Tokens.Leave()
			defer done()
			return c.serve(req, conn, arrival, w)
		},
	}, nil
}

// readHello reads the handshake, which has no ticket here.
func readHello(req *handler.Request) (connect.Hello, error) {
	body, err := handler.ReadBody(req, remote.HelloType)
	if err != nil {
		return connect.Hello{}, err
	}
	hello, refused := door.ReadHello(body)
	if refused != nil {
		return connect.Hello{}, fault.Wrap(refused, fault.InvalidArgument, "%s", refused.Message)
	}
	if hello.Ticket != "" {
		return connect.Hello{}, fault.New(fault.InvalidArgument, "the token belongs into Authorization")
	}
	return hello, nil
}

// serve serves a connection until it is over. That its client has gone is no error.
func (c *Connector) serve(req *handler.Request, conn *connection, arrival door.Arrival, w io.Writer) error {
	out, err := newOutbox(w, c.options.Limits.Write)
	if err != nil {
		return err
	}
	c.add(conn)
	defer c.remove(conn)
	defer conn.in.end()
	opened := remote.Opened{Answer: connect.Answer{Version: connect.Version, OK: true}, Connection: conn.id}
	if _, err := out.Write(append(handler.EncodeJSON(opened), '\n')); err != nil {
		return nil //nolint:nilerr // nobody reads
	}
	gone := context.AfterFunc(req.Context(), conn.in.end)
	defer gone()
	var beating sync.WaitGroup
	defer beating.Wait()
	over := make(chan struct{})
	defer close(over)
	beating.Go(func() { c.beat(conn, out, over) })
	_ = c.options.Tokens.Host().Serve(c.ctx, arrival, conn.in, out) // it is in the log
	return nil
}

// beat says now and then that the connection lives, to proxies and to the client, until over is closed or nobody reads.
func (c *Connector) beat(conn *connection, out *outbox, over <-chan struct{}) {
	ticker := time.NewTicker(c.options.Limits.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			if out.comment() != nil {
				conn.in.end()
				return
			}
		}
	}
}
