// Package gateway is where agents reach Claude Ops: a process that holds tokens, store and policy listens, and a
// connector in the agent's process tree (internal/agents/stdioproxy) copies MCP messages to it. Which rights a
// connection has is decided here, before anything of the agent is read; what the agent's side sends can only lower
// them.
//
// A Host serves connections, whatever they come through, and knows those that are open. Host.Open makes a Door: a unix
// socket for one session, with a ticket of its own. Another transport, such as HTTPS with a token, identifies the
// client and its Rights itself, and calls Host.Serve.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Rights limit what a connection may do. They are fixed on this side.
type Rights struct {
	Session    string // the agent's session; "" for none
	Tier       gitprovider.Tier
	DryRun     bool
	ReadOnly   bool
	Toolsets   []string // that it gets
	AllowWrite bool     // tools of other toolsets than that of pull requests may write
	Repos      []string // that it is for, as entries of CLAUDEOPS_REPOS; none for those that the server allows
	Folder     string   // that those toolsets look at; "" for this process's working folder
}

// Lower takes away what the agent's side gives up. It adds nothing, whatever it says: a tier that is higher, or that is
// none, leaves the tier as it is.
func (r Rights) Lower(l stdioproxy.Lower) Rights {
	if asked := gitprovider.Tier(l.Tier); asked >= gitprovider.TierObserve && asked < r.Tier {
		r.Tier = asked
	}
	r.DryRun = r.DryRun || l.DryRun
	r.ReadOnly = r.ReadOnly || l.ReadOnly
	return r
}

// Client is the agent's side of a connection after its handshake.
type Client struct {
	In  io.Reader
	Out io.Writer
	// Messages replaces In for a client whose messages each have their own reply writer; Out then receives unsolicited
	// notifications. nil for a client with one stream in each direction.
	Messages <-chan mcpio.Exchange
	Actor    record.Actor // who is connected, but for what the client calls itself
	// Calling is called when a call of a tool begins, and returns a function to call when it ends.
	Calling func() (ended func())
	// Admitted asks again whether the connection may be: an error if it is over, somebody has cut it off, or its token or
	// session is good no more.
	Admitted func(ctx context.Context) error
	// Gone is closed when the connection is over for good: calls that have written nothing yet end.
	Gone <-chan struct{}
}

// Audit appends to the audit. internal/records/store implements it.
type Audit interface {
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// Records keep who is connected, for people and for other processes, who may ask there that a connection be cut off.
// internal/records/store implements it.
type Records interface {
	OpenConnection(ctx context.Context, c record.Connection) error
	// HeedConnections records how many calls are under way in connections, by their ids, and reports for each whether it
	// is to be cut off. It leaves out those that are not recorded any more, though they are open.
	HeedConnections(ctx context.Context, calls map[string]int) (cut map[string]bool, err error)
	CloseConnection(ctx context.Context, id string) error
	// IsCut reports whether somebody has cut off the connection, or another one of its session; session may be "".
	IsCut(ctx context.Context, id, session string) (bool, error)
}

// Options configure a Host. All are required, but Records, Limits and Credentials.
type Options struct {
	// Serve speaks MCP with a client at these rights, and returns when the client has gone and its calls are over.
	Serve       func(ctx context.Context, r Rights, c Client) error
	Audit       Audit
	Records     Records // nil: connections are not recorded
	Log         *slog.Logger
	Now         func() time.Time
	NewID       func() string
	Limits      Limits
	Credentials func(net.Conn) (Peer, error) // nil: as the kernel has them
}

// Limits bound what agents can take of this process. A value of zero is the default.
type Limits struct {
	Handshake   time.Duration // for a connector to say its ticket, and for this side to know its session's processes; 5 s
	Connections int           // of one door at the same time, with those in their handshake; 8
	End         time.Duration // for calls that are under way when a door is closed; 35 s, which leaves a write 30 s
	// that a session, or all connections of a token, may send in an hour; beyond, they wait. Also how often they may
	// connect: a session waits, a token is refused; 5,000
	Messages int64
	Bytes    int64         // the same in bytes; 128 MiB
	Look     time.Duration // how often it is looked whether a connection is to be cut off; 1 s
	// of the audit about refused connections, for each door in an hour; 20. The last one says how many were left out.
	Rows int
}

func (l Limits) withDefaults() Limits {
	const defaultBytes = 128 << 20
	return Limits{
		Handshake: orDefault(l.Handshake, 5*time.Second), Connections: orDefault(l.Connections, 8),
		End:      orDefault(l.End, 35*time.Second),
		Messages: orDefault(l.Messages, 5000), Bytes: orDefault(l.Bytes, defaultBytes), Rows: orDefault(l.Rows, 20),
		Look: orDefault(l.Look, time.Second),
	}
}

func orDefault[T int | int64 | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// Host serves connections and knows those that are open. It is safe for concurrent use.
type Host struct {
	options Options

	mu   sync.Mutex
	open map[string]*connection // by their ids
	over map[string]bool        // sessions that were cut off

	tracks   map[*connection]bool // that are to be in the records
	tracking bool                 // trackAll runs
	arrived  chan struct{}        // has a value if one of them is new
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

	recording context.Context // ends when the connection is to leave the records
	mu        sync.Mutex
	recorded  bool
}

func (c *connection) disconnect() {
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
	return &Host{options: o, open: map[string]*connection{}, over: map[string]bool{},
		tracks: map[*connection]bool{}, arrived: make(chan struct{}, 1)}
}

// AuthenticatedConn is a connection that has shown who it is.
type AuthenticatedConn struct {
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
func (h *Host) Serve(ctx context.Context, a AuthenticatedConn, in io.Reader, out io.Writer) error {
	c := h.newConnection(a)
	budget := a.Budget
	if budget == nil {
		budget = h.NewBudget()
	}
	read := &metered{in, budget, c.gone}
	c.interrupt = func() { _ = read.SetReadDeadline(time.Unix(1, 0)) } // a Read that cannot be interrupted is left behind
	return h.serveClient(ctx, a, c, Client{In: read, Out: out})
}

// ServeExchanges is Serve for messages that each have their own reply writer; notes receives unsolicited notifications.
// The sender of messages takes from Arrival.Budget. After the return no message is taken any more.
func (h *Host) ServeExchanges(ctx context.Context, a AuthenticatedConn, messages <-chan mcpio.Exchange,
	notes io.Writer) error {
	return h.serveClient(ctx, a, h.newConnection(a), Client{Messages: messages, Out: notes})
}

func (h *Host) newConnection(a AuthenticatedConn) *connection {
	return &connection{
		Connection: record.Connection{
			ID: h.options.NewID(), Session: a.Rights.Session, Tier: a.Rights.Tier, DryRun: a.Rights.DryRun,
			ReadOnly: a.Rights.ReadOnly,
			Since:    h.options.Now(), Way: a.Way, Peer: a.Peer, Credential: a.Credential,
		},
		gone: make(chan struct{}), cutOff: a.CutOff,
	}
}

// serveClient lists a connection and serves its client, of which the ways of its messages are given.
func (h *Host) serveClient(ctx context.Context, a AuthenticatedConn, c *connection, client Client) error {
	defer h.recordConnection(ctx, c)()
	h.addConn(c)
	defer h.dropConnection(c)
	stop := context.AfterFunc(ctx, c.disconnect)
	defer stop()
	h.logConnected(c)
	client.Actor, client.Calling, client.Gone = a.Actor, c.calling, c.gone
	client.Admitted = func(ctx context.Context) error { return h.admitted(ctx, c, a.Still) }
	err := h.options.Serve(context.WithoutCancel(ctx), a.Rights, client)
	h.logOver(c, err)
	return err
}

func (h *Host) logConnected(c *connection) {
	h.options.Log.Info("an agent is connected", "connection", c.ID, "session", c.Session, "credential", c.Credential,
		"tier", int(c.Tier), "dry_run", c.DryRun, "read_only", c.ReadOnly, "way", c.Way, "peer", c.Peer)
}

func (h *Host) logOver(c *connection, err error) {
	h.options.Log.Info("an agent's connection is over", "connection", c.ID, "session", c.Session, "credential",
		c.Credential, "error", err)
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

func (h *Host) addConn(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[c.ID] = c
	if h.over[c.Session] { // it was admitted before
		c.disconnect()
	}
}

func (h *Host) dropConnection(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c.ID)
	c.disconnect()
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
	c.disconnect()
	if c.Session == "" {
		return c.Connection, true
	}
	h.over[c.Session] = true
	for _, other := range h.open {
		if other.Session == c.Session {
			other.disconnect()
		}
	}
	return c.Connection, true
}

// calling counts a call of a tool until it has ended.
func (c *connection) calling() (ended func()) {
	c.calls.Add(1)
	var once sync.Once
	return func() { once.Do(func() { c.calls.Add(-1) }) }
}

// recordConnection keeps a connection in the records, and cuts it off when somebody asks for that there, until over is
// called. The connection need not wait for the records; what cannot be read or written is tried again.
func (h *Host) recordConnection(ctx context.Context, c *connection) (over func()) {
	records := h.options.Records
	if records == nil {
		return func() {}
	}
	var stop context.CancelFunc
	// A connection whose calls go on after ctx is one still.
	c.recording, stop = context.WithCancel(context.WithoutCancel(ctx))
	h.track(c)
	return func() {
		stop()
		h.mu.Lock()
		delete(h.tracks, c)
		h.mu.Unlock()
		c.mu.Lock() // it is not being recorded then
		defer c.mu.Unlock()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTime)
		defer cancel()
		if err := records.CloseConnection(last, c.ID); err != nil {
			h.options.Log.Warn("the end of an agent's connection could not be recorded", "connection", c.ID, "error",
				fault.From(err).Message)
		}
	}
}

// track has a connection recorded soon, and its calls and requests to cut it off looked at with those of all others.
func (h *Host) track(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tracks[c] = true
	select {
	case h.arrived <- struct{}{}:
	default: // it is told already
	}
	if !h.tracking {
		h.tracking = true
		go h.trackAll()
	}
}

// trackAll does the work of record for all connections, until there are none.
func (h *Host) trackAll() {
	ticker := time.NewTicker(h.options.Limits.Look)
	defer ticker.Stop()
	for {
		select {
		case <-h.arrived:
			h.recordNew(h.tracked())
		case <-ticker.C:
			all := h.tracked()
			if len(all) == 0 && h.stopTracking() {
				return
			}
			h.recordNew(all)
			h.syncCalls(all)
		}
	}
}

// stopTracking ends trackAll; false if a connection has arrived meanwhile.
func (h *Host) stopTracking() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tracking = len(h.tracks) > 0
	return !h.tracking
}

func (h *Host) tracked() []*connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.tracks))
}

// recordNew records those that are not recorded yet, or not any more.
func (h *Host) recordNew(all []*connection) {
	for _, c := range all {
		c.mu.Lock()
		if !c.recorded && c.recording.Err() == nil {
			now := c.Connection
			now.Calls = int(c.calls.Load())
			ctx, cancel := context.WithTimeout(c.recording, rowTime)
			err := h.options.Records.OpenConnection(ctx, now)
			cancel()
			c.recorded = err == nil
			h.logUnrecorded(c.recording, err)
		}
		c.mu.Unlock()
	}
}

// syncCalls records the calls of connections that are recorded, and obeys requests that are recorded for them.
func (h *Host) syncCalls(all []*connection) {
	calls := map[string]int{}
	for _, c := range all {
		if c.isRecorded() {
			calls[c.ID] = int(c.calls.Load())
		}
	}
	if len(calls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rowTime)
	defer cancel()
	cut, err := h.options.Records.HeedConnections(ctx, calls)
	if err != nil {
		h.logUnrecorded(ctx, err)
		return
	}
	for _, c := range all {
		if _, asked := calls[c.ID]; !asked {
			continue
		}
		isCut, recorded := cut[c.ID]
		if !recorded {
			c.mu.Lock()
			c.recorded = false
			c.mu.Unlock()
		}
		if isCut {
			h.Cut(c.ID)
		}
	}
}

func (c *connection) isRecorded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recorded
}

// logUnrecorded logs that the records could not be kept, unless it no longer matters.
func (h *Host) logUnrecorded(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		h.options.Log.Warn("not recorded who is connected", "error", fault.From(err).Message)
	}
}

// accept gives each connection to take, until the listener is closed or ctx ends.
func accept(ctx context.Context, listener net.Listener, take func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if conn != nil {
				_ = conn.Close()
			}
			return
		case err != nil: // too many files are open, for instance
			const pause = 50 * time.Millisecond
			time.Sleep(pause)
		default:
			take(conn)
		}
	}
}

// waitServed waits for connections that are told to end, for Limits.End at most; false if some go on.
func (h *Host) waitServed(served *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		served.Wait()
	}()
	bound := time.NewTimer(h.options.Limits.End)
	defer bound.Stop()
	select {
	case <-done:
		return true
	case <-bound.C:
		return false
	}
}
