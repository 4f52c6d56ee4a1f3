// Package door is where agents reach Claude Ops: a process that holds tokens, store and policy listens, and a connector
// in the agent's process tree (internal/agents/connect) copies MCP messages to it. Which rights a connection has is
// decided here, before anything of the agent is read; what the agent's side sends can only lower them.
//
// A Host serves connections, whatever they come through, and knows those that are open. Host.Open makes a Door: a unix
// socket for one session, with a ticket of its own. Another transport, such as HTTPS with a token, identifies the
// client and its Rights itself, and calls Host.Serve.
package door

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/base/exchange"
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
func (r Rights) Lower(l connect.Lower) Rights {
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
	Messages <-chan exchange.Exchange
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
	// HeedConnection records how many calls are under way, and reports whether the connection is to be cut off. known is
	// false for one that is not recorded any more, though it is open.
	HeedConnection(ctx context.Context, id string, calls int) (known, cut bool, err error)
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
