package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// Names in a door's folder, and of it.
const (
	folderPrefix = "claudeops-door-" // the session's id follows
	socketName   = "mcp.sock"
	maxSocket    = 100 // bytes of a socket's path; the systems' limits are 104 and 108
	shortDir     = "/tmp"
)

// Spec configures a Door.
type Spec struct {
	Rights Rights       // with the Session, which names the folder
	Actor  record.Actor // the session
	// Dir is the parent of the door's folder, outside of the state folder; "" for os.TempDir(). Where the socket's path
	// would be too long, it is made in /tmp.
	Dir string
	// Account is the agent's user: the only one who may connect; its group gives access to folder, socket and ticket. nil:
	// the user of this process, and no one else has access.
	Account *sandbox.Account
	// Still checks whether the session may go on; nil where only closing the door ends it.
	Still func(ctx context.Context) error
}

// Folder returns the folder for the door of a session, whether the door exists or not.
func Folder(dir, session string) string {
	if dir == "" {
		dir = os.TempDir()
	}
	folder := filepath.Join(dir, folderPrefix+session)
	if abs, err := filepath.Abs(folder); err == nil {
		folder = abs
	}
	if len(filepath.Join(folder, socketName)) > maxSocket {
		return filepath.Join(shortDir, folderPrefix+session)
	}
	return folder
}

// IsFolder reports whether a path is that of the door of a session, so that what a killed process left can be removed.
func IsFolder(path, session string) bool {
	return session != "" && filepath.IsAbs(path) && filepath.Base(path) == folderPrefix+session
}

// Door serves the connections of one session. Its folder, which only the agent's user can enter beside us, holds the
// socket and the ticket.
type Door struct {
	host     *Host
	rights   Rights
	actor    record.Actor
	owner    int // uid
	folder   string
	ticket   [sha256.Size]byte
	listener net.Listener
	rows     *rows
	budget   *Budget       // of what the session sends
	arrivals *Budget       // of its connections, so that they cannot fill a log
	members  chan struct{} // closed when member is set
	member   func(pid int) bool
	state    state
}

// state is the life cycle of a Door.
type state struct {
	ctx    context.Context // ends when the door is closed
	close  context.CancelFunc
	served sync.WaitGroup
	still  func(ctx context.Context) error // Spec.Still

	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool // no connection is accepted any more
}

// Open opens a door. An error is one of this machine's, and leaves nothing.
func (h *Host) Open(s Spec) (*Door, error) {
	d := &Door{
		host: h, rights: s.Rights, actor: s.Actor, owner: os.Getuid(), folder: Folder(s.Dir, s.Rights.Session),
		rows:     newRows(h),
		budget:   h.NewBudget(),
		arrivals: h.NewBudget(), members: make(chan struct{}),
	}
	d.state.still, d.state.conns = s.Still, map[net.Conn]bool{}
	if err := d.createDir(s.Account); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, err // it is not ours
		}
		if d.listener != nil {
			err = errors.Join(err, d.listener.Close())
		}
		return nil, errors.Join(err, os.RemoveAll(d.folder))
	}
	d.state.ctx, d.state.close = context.WithCancel(context.Background())
	d.state.served.Go(func() { accept(d.state.ctx, d.listener, d.admitConn) })
	return d, nil
}

// createDir makes the folder and what is in it. All of it is ours, so that the agent can exchange nothing.
func (d *Door) createDir(account *sandbox.Account) error {
	const ticketBytes = 32
	secret := make([]byte, ticketBytes)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	ticket := base64.RawURLEncoding.EncodeToString(secret)
	d.ticket = sha256.Sum256([]byte(ticket))
	var shared os.FileMode // with the agent's group
	const read, enter, connectTo = 0o040, 0o010, 0o060
	if account != nil {
		d.owner, shared = account.UID, 0o070
	}
	if err := account.WithGroup(func() error { return os.Mkdir(d.folder, 0o700) }); err != nil {
		return err
	}
	return account.WithGroup(func() error {
		if err := os.WriteFile(d.TicketFile(), []byte(ticket+"\n"), 0o600); err != nil {
			return err
		}
		var err error
		if d.listener, err = new(net.ListenConfig).Listen(context.Background(), "unix", d.socket()); err != nil {
			return err
		}
		return errors.Join( // the folder last
			os.Chmod(d.TicketFile(), 0o600|shared&read), os.Chmod(d.socket(), 0o600|shared&connectTo),
			os.Chmod(d.folder, 0o700|shared&enter),
		)
	})
}

func (d *Door) socket() string { return filepath.Join(d.folder, socketName) }

// Address returns what a connector needs to find the door.
func (d *Door) Address() string { return "unix:" + d.socket() }

// TicketFile returns the file that holds the ticket.
func (d *Door) TicketFile() string { return filepath.Join(d.folder, stdioproxy.TicketName) }

// Folder returns the folder of socket and ticket, which the agent has to be able to enter.
func (d *Door) Folder() string { return d.folder }

// Admit sets which processes belong to the session. Connections are not accepted before. It may be called once.
func (d *Door) Admit(member func(pid int) bool) {
	d.member = member
	close(d.members)
}

// Close shuts the door: ticket and socket stop working, calls that have written nothing end, and others have
// Limits.End. It returns when they are over and recorded, or their time is.
func (d *Door) Close() error {
	d.shutOut()
	err := errors.Join(d.listener.Close(), os.RemoveAll(d.folder))
	d.state.close()
	if !d.host.waitServed(&d.state.served) {
		err = errors.Join(err, fmt.Errorf("calls of session %s go on after the time for their end", d.rights.Session))
	}
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	for c := range d.state.conns {
		_ = c.Close() // of calls that are left behind
	}
	return err
}

// shutOut refuses all further connections.
func (d *Door) shutOut() {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	d.state.shut = true
}

// admitConn serves a connection, or refuses it where there are too many.
func (d *Door) admitConn(conn net.Conn) {
	if n := d.enter(conn); n > d.host.options.Limits.Connections {
		d.refuseConn(conn, Peer{}, fault.New(fault.LimitReached, "this session has %d connections already, and can have no more",
			n-1), true)
		d.dropConn(conn)
		return
	}
	d.state.served.Go(func() {
		defer d.dropConn(conn)
		d.serveConn(conn)
	})
}

// enter counts a connection in, and returns how many there are.
func (d *Door) enter(c net.Conn) int {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	d.state.conns[c] = true
	return len(d.state.conns)
}

func (d *Door) dropConn(c net.Conn) {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	delete(d.state.conns, c)
	_ = c.Close() // unsent data is discarded
}

// Budget is the remaining allowance of messages and bytes of a session, or of a token's holder. Refused messages are
// recorded too, so this bounds what an agent can write to the disk. It refills at a rate of its full size per hour.
type Budget struct {
	limits Limits
	now    func() time.Time

	mu       sync.Mutex
	messages float64
	bytes    float64
	at       time.Time // when the two were right
}

// NewBudget makes a full one.
func (h *Host) NewBudget() *Budget {
	l := h.options.Limits
	return &Budget{limits: l, now: h.options.Now, messages: float64(l.Messages), bytes: float64(l.Bytes),
		at: h.options.Now()}
}

// spend takes what was read, and returns how long to wait before more is read.
func (b *Budget) spend(size, messages int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	b.messages -= float64(messages)
	b.bytes -= float64(size)
	owed := max(-b.messages/float64(b.limits.Messages), -b.bytes/float64(b.limits.Bytes), 0)
	return time.Duration(owed * float64(time.Hour))
}

// Take takes a message of a size, in bytes, if there is room for it, and returns how long it is until there is; 0 if it
// was taken.
func (b *Budget) Take(size int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	lacks := max((1-b.messages)/float64(b.limits.Messages),
		(min(float64(size), float64(b.limits.Bytes))-b.bytes)/float64(b.limits.Bytes), 0)
	if lacks > 0 {
		return max(time.Duration(lacks*float64(time.Hour)), 1)
	}
	b.messages--
	b.bytes -= float64(size)
	return 0
}

// refill adds what the time has brought. The caller holds mu.
func (b *Budget) refill() {
	now := b.now()
	hours := max(now.Sub(b.at).Hours(), 0)
	b.at = now
	b.messages = min(b.messages+hours*float64(b.limits.Messages), float64(b.limits.Messages))
	b.bytes = min(b.bytes+hours*float64(b.limits.Bytes), float64(b.limits.Bytes))
}

// metered reads no faster than the budget allows.
type metered struct {
	in     io.Reader
	budget *Budget
	gone   <-chan struct{}
}

// Read implements io.Reader. It ends when the connection is over.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	if pause := m.budget.spend(n, bytes.Count(p[:n], []byte{'\n'})); pause > 0 && err == nil {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.gone:
			return n, io.EOF
		}
	}
	return n, err
}

// SetReadDeadline lets a Read that waits be ended.
func (m *metered) SetReadDeadline(at time.Time) error {
	if d, ok := m.in.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(at)
	}
	return nil
}
