package gateway

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/records/record"
)

// serveConn does the handshake of a connection, and then serves it.
func (d *Door) serveConn(conn net.Conn) {
	stop := context.AfterFunc(d.state.ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) }) // ends a pending read
	defer stop()
	if !d.arrive() {
		return
	}
	if err := conn.SetDeadline(time.Now().Add(d.host.options.Limits.Handshake)); err != nil {
		return
	}
	peer, err := d.host.options.Credentials(conn)
	if peer.Release != nil {
		defer peer.Release()
	}
	if err != nil {
		d.refuseConn(conn, peer, fault.Wrap(err, fault.Unauthenticated, "the system does not say who is connected"), false)
		return
	}
	in := bufio.NewReaderSize(conn, stdioproxy.MaxHello)
	hello, refused := d.admitClient(in, peer)
	if refused != nil {
		d.refuseConn(conn, peer, refused, false)
		return
	}
	if !sendAnswer(conn, stdioproxy.Answer{OK: true}) || conn.SetDeadline(time.Time{}) != nil {
		return
	}
	if d.state.ctx.Err() != nil {
		return
	}
	rights := d.rights.Lower(hello.Lower)
	if d.isFurther() {
		// the client need not wait for it, and the end of the door does
		d.state.served.Go(func() { d.rows.further(d.state.ctx, rights, peer) })
	}
	err = d.host.Serve(
		d.state.ctx,
		AuthenticatedConn{Rights: rights, Actor: d.actor, Way: "unix", Peer: peer.String(), Budget: d.budget,
			Still: d.state.still, CutOff: d.shutOut},
		&buffered{conn, in},
		conn,
	)
	if err != nil {
		d.host.options.Log.Warn("an agent's connection ended with an error", "session", d.rights.Session, "error", err)
	}
}

// arrive waits until the session may connect once more; false if the door is closed before.
func (d *Door) arrive() bool {
	timer := time.NewTimer(d.arrivals.spend(0, 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.state.ctx.Done():
		return false
	}
}

// admitClient identifies the client, and says why it is refused; nil if it is admitted.
func (d *Door) admitClient(in *bufio.Reader, peer Peer) (stdioproxy.Hello, *fault.Error) {
	if peer.Known && peer.UID != d.owner {
		return stdioproxy.Hello{}, fault.New(fault.Unauthenticated, "the connection is of user %d, and the agent's is %d",
			peer.UID, d.owner)
	}
	hello, refused := greeted(in)
	if refused != nil {
		return hello, refused
	}
	given := sha256.Sum256([]byte(hello.Ticket))
	if subtle.ConstantTimeCompare(given[:], d.ticket[:]) != 1 {
		return hello, fault.New(fault.Unauthenticated, "the ticket is not that of this session")
	}
	if !d.belongs(peer) {
		return hello, fault.New(fault.Unauthenticated, "the process is none of this session's")
	}
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	if d.state.shut {
		return hello, fault.New(fault.Unauthenticated, "the session is over, or was cut off")
	}
	return hello, nil
}

// ReadHello reads a handshake as strictly as arguments of tools are read: each name once, spelled exactly, with a value
// of its kind; nothing beside what there is, nothing after it.
func ReadHello(text []byte) (stdioproxy.Hello, *fault.Error) {
	var hello struct { // connect.Hello, which is of the standard library alone
		Version  int    `json:"claudeops" required:"true"`
		Ticket   string `json:"ticket"`
		Tier     int    `json:"tier"`
		DryRun   bool   `json:"dry_run"`
		ReadOnly bool   `json:"read_only"`
	}
	var err error
	if violations := strictjson.Decode(text, &hello, strictjson.Options{What: "handshake"}); len(violations) > 0 {
		err = errors.New(violations[0].Message)
	} else if hello.Version != stdioproxy.Version {
		err = fmt.Errorf("its version is %d, not %d", hello.Version, stdioproxy.Version)
	}
	if err != nil {
		return stdioproxy.Hello{}, fault.Wrap(err, fault.Unauthenticated,
			"the handshake cannot be read; connect with the connector of the same release")
	}
	return stdioproxy.Hello{
		Version: hello.Version, Ticket: hello.Ticket,
		Lower: stdioproxy.Lower{Tier: hello.Tier, DryRun: hello.DryRun, ReadOnly: hello.ReadOnly},
	}, nil
}

// belongs reports whether the process is one of the session's. It waits until those are known, for as long as a
// handshake may take.
func (d *Door) belongs(peer Peer) bool {
	bound := time.NewTimer(d.host.options.Limits.Handshake)
	defer bound.Stop()
	select {
	case <-d.members:
	case <-bound.C:
		return false
	case <-d.state.ctx.Done():
		return false
	}
	if peer.PID == 0 {
		return true // the system does not say
	}
	// A process that has ended by now may have given its id to another one.
	return d.member(peer.PID) && (peer.Ended == nil || !peer.Ended())
}

// refuseConn answers a connector that it is refused, and records it.
func (d *Door) refuseConn(conn net.Conn, peer Peer, why *fault.Error, retry bool) {
	if d.state.ctx.Err() == nil { // otherwise the door was closed under it
		d.rows.recordRefusedConn(d.state.ctx, d.rights, peer, why)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	sendAnswer(conn, stdioproxy.Answer{Code: string(why.Code), Message: why.Message, Retry: retry})
}

// isFurther reports whether the session has a connection already. A further one is recorded. It has the rights of the
// first, and nothing is wrong with it: a client may start its server anew.
func (d *Door) isFurther() bool {
	return slices.ContainsFunc(d.host.Connections(),
		func(c record.Connection) bool { return c.Session == d.rights.Session })
}

// buffered is a connection of which something was read ahead.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

// Read implements io.Reader.
func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// ActionConnect is the audit's name for a refused connection, or a further one at the same time.
const ActionConnect = "connect"

// rowTime bounds the time for a row.
const rowTime = 10 * time.Second

// rows records connections of one door, no more than Limits.Rows in an hour.
type rows struct {
	host *Host

	mu      sync.Mutex
	since   time.Time
	written int
	left    int // that were left out
}

func newRows(h *Host) *rows { return &rows{host: h, since: h.options.Now()} }

// recordRefusedConn records a refused connection.
func (r *rows) recordRefusedConn(ctx context.Context, rights Rights, peer fmt.Stringer, why *fault.Error) {
	r.insertAttempt(ctx, rights, record.Attempt{
		Outcome: record.OutcomeRefused, Code: why.Code,
		Message: fmt.Sprintf("a connection of %s was refused: %s", peer, why.Message),
	})
}

// further records a connection that is not the only one of its session.
func (r *rows) further(ctx context.Context, rights Rights, peer Peer) {
	r.insertAttempt(ctx, rights, record.Attempt{Outcome: record.OutcomeDone,
		Message: fmt.Sprintf("%s is connected beside another process of the session", peer)})
}

func (r *rows) insertAttempt(ctx context.Context, rights Rights, row record.Attempt) {
	left, ok := r.room()
	if !ok {
		return
	}
	if left > 0 {
		row.Message += fmt.Sprintf(" (%d more were not recorded)", left)
	}
	o := r.host.options
	row.Time, row.RequestID = o.Now(), o.NewID()
	row.Actor = record.Actor{Door: record.DoorMCP, System: record.SystemConnector}
	if rights.Session != "" {
		row.Actor.Session = &record.ActorSession{ID: rights.Session}
	}
	row.Tier, row.Action, row.Session = rights.Tier, ActionConnect, rights.Session
	o.Log.Warn("an agent's connection", "session", rights.Session, "outcome", row.Outcome, "message", row.Message)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTime)
	defer cancel()
	if err := o.Audit.Record(ctx, row, nil); err != nil {
		o.Log.Error("an agent's connection could not be recorded", "session", rights.Session, "error",
			fault.From(err).Message)
	}
}

// room reserves a row. left is the number of rows dropped since the last one that was reserved.
func (r *rows) room() (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.host.options.Now(); now.Sub(r.since) >= time.Hour {
		r.since, r.written = now, 0
	}
	if r.written >= r.host.options.Limits.Rows {
		r.left++
		return 0, false
	}
	r.written++
	left, r.left = r.left, 0
	return left, true
}

// Peer is the process at the other end of a socket, as the kernel knows it.
type Peer struct {
	Known bool // UID is
	UID   int
	PID   int // 0 if it is not known
	// Ended reports whether the process has ended, so that PID may name another one by now; nil where the kernel does not
	// say.
	Ended func() bool
	// Release gives up what Ended needs; nil for nothing.
	Release func()
}

func (p Peer) String() string {
	if !p.Known {
		return "a process that the system does not name"
	}
	return fmt.Sprintf("pid %d, uid %d", p.PID, p.UID)
}

// control does something with the socket of a connection.
func control(c net.Conn, do func(fd int) error) error {
	socket, ok := c.(interface {
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok {
		return fmt.Errorf("%T has no socket", c)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = raw.Control(func(fd uintptr) { done = do(int(fd)) })
	return errors.Join(err, done)
}

// PeerOf asks the kernel which user has made a connection; Known is false where it does not say.
func PeerOf(c net.Conn) (Peer, error) { return credentials(c) }
