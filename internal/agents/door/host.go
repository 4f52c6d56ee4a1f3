package door

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/base/exchange"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Host serves connections and knows those that are open. It is safe for concurrent use.
type Host struct {
	options Options

	mu   sync.Mutex
	open map[string]*connection // by their ids
	over map[string]bool        // sessions that were cut off
}

// connection is one that is served.
type connection struct {
	record.Connection // but for its calls
	calls             atomic.Int64
	gone              chan struct{}
	once              sync.Once
	// interrupt ends a pending Read from the client; nil if there is none to end.
	interrupt func()
	// cutOff also refuses later connections with the same credential; nil if they are not refused.
	cutOff func()
}

func (c *connection) end() {
	c.once.Do(func() {
		close(c.gone)
		if c.interrupt != nil {
			c.interrupt()
		}
	})
}

// NewHost makes a Host.
func NewHost(o Options) *Host {
	o.Limits = o.Limits.withDefaults()
	if o.Credentials == nil {
		o.Credentials = credentials
	}
	return &Host{options: o, open: map[string]*connection{}, over: map[string]bool{}}
}

// Arrival is a connection that has shown who it is.
type Arrival struct {
	Rights     Rights
	Way        string
	Peer       string
	Actor      record.Actor // see Client
	Credential string       // the name of the token; "" for a session's ticket
	// Holder identifies the credential's holder across changes of the secret; "": Credential identifies it.
	Holder string
	// Budget is shared by this connection and others of the same credential; nil gives the connection its own.
	Budget *Budget
	// Still checks again that the credential is valid; nil for one that cannot be revoked.
	Still func(ctx context.Context) error
	// CutOff refuses later connections with the same credential; it is called when a person cuts the connection off,
	// before it ends. nil: they are not refused.
	CutOff func()
}

// Serve speaks MCP with an agent that has arrived, and returns when the connection is over. in and out are the caller's
// to close; a Read of in has to end when ctx does. The connection is over when in ends and what was asked is answered;
// or when ctx ends or somebody cuts it off: then calls that have written nothing end, and others have Limits.End.
func (h *Host) Serve(ctx context.Context, a Arrival, in io.Reader, out io.Writer) error {
	c := h.newConnection(a)
	budget := a.Budget
	if budget == nil {
		budget = h.NewBudget()
	}
	read := &metered{in, budget, c.gone}
	c.interrupt = func() { _ = read.SetReadDeadline(time.Unix(1, 0)) } // a Read that cannot be interrupted is left behind
	return h.serve(ctx, a, c, Client{In: read, Out: out})
}

// ServeExchanges is Serve for messages that each have their own reply writer; notes receives unsolicited notifications.
// The sender of messages takes from Arrival.Budget. After the return no message is taken any more.
func (h *Host) ServeExchanges(ctx context.Context, a Arrival, messages <-chan exchange.Exchange,
	notes io.Writer) error {
	return h.serve(ctx, a, h.newConnection(a), Client{Messages: messages, Out: notes})
}

func (h *Host) newConnection(a Arrival) *connection {
	return &connection{
		Connection: record.Connection{
			ID: h.options.NewID(), Session: a.Rights.Session, Tier: a.Rights.Tier, DryRun: a.Rights.DryRun,
			ReadOnly: a.Rights.ReadOnly,
			Since:    h.options.Now(), Way: a.Way, Peer: a.Peer, Credential: a.Credential,
		},
		gone: make(chan struct{}), cutOff: a.CutOff,
	}
}

// serve lists a connection and serves its client, of which the ways of its messages are given.
func (h *Host) serve(ctx context.Context, a Arrival, c *connection, client Client) error {
	defer h.record(ctx, c)()
	h.add(c)
	defer h.remove(c)
	stop := context.AfterFunc(ctx, c.end)
	defer stop()
	log := h.options.Log.With("connection", c.ID, "session", c.Session, "credential", c.Credential)
	log.Info("an agent is connected", "tier", int(c.Tier), "dry_run", c.DryRun, "read_only", c.ReadOnly, "way", c.Way,
		"peer", c.Peer)
	client.Actor, client.Calling, client.Gone = a.Actor, c.calling, c.gone
	client.Admitted = func(ctx context.Context) error { return h.admitted(ctx, c, a.Still) }
	err := h.options.Serve(context.WithoutCancel(ctx), a.Rights, client)
	log.Info("an agent's connection is over", "error", err)
	return err
}

// admitted asks whether a connection may still be. The records are read, too: this process may not have noticed a
// change in them yet.
func (h *Host) admitted(ctx context.Context, c *connection, still func(context.Context) error) error {
	cut := h.isOver(c)
	if !cut && h.options.Records != nil {
		var err error
		if cut, err = h.options.Records.IsCut(ctx, c.ID, c.Session); err != nil {
			return err
		}
	}
	if cut {
		return fault.New(fault.Unauthenticated,
			"the connection is over: its session has ended, or a person has cut it off; nothing was done")
	}
	if still == nil {
		return nil
	}
	return still(ctx)
}

func (h *Host) isOver(c *connection) bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (h *Host) add(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[c.ID] = c
	if h.over[c.Session] { // it was admitted before
		c.end()
	}
}

func (h *Host) remove(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c.ID)
	c.end()
}

// Connections lists those that this Host serves, the oldest first.
func (h *Host) Connections() []record.Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []record.Connection
	for _, c := range h.open {
		one := c.Connection
		one.Calls = int(c.calls.Load())
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b record.Connection) int {
		if at := a.Since.Compare(b.Since); at != 0 {
			return at
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return out
}

// Cut ends a connection and, where it came in by a ticket, every other one of its session, and refuses the ticket from
// then on. A client with a token may connect again, unless its CutOff prevents that. false if no connection has the id.
// It does not wait for the end.
func (h *Host) Cut(id string) (record.Connection, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.open[id]
	if c == nil {
		return record.Connection{}, false
	}
	if c.cutOff != nil {
		c.cutOff()
	}
	c.end()
	if c.Session == "" {
		return c.Connection, true
	}
	h.over[c.Session] = true
	for _, other := range h.open {
		if other.Session == c.Session {
			other.end()
		}
	}
	return c.Connection, true
}
