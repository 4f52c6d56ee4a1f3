package door

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/connect"
	"github.com/claudeops/claudeops/internal/fault"
)

// Bounds of a socket for agents with tokens.
const (
	maxTokenConnections = 100             // at the same time, of all tokens, with those in their handshake
	tokenLook           = 2 * time.Second // how often connections are looked at whose token may be good no more
)

// TokenDoor is a unix socket for agents that the operator has given a token each. It serves as long as its process does.
type TokenDoor struct {
	Host *Host
	// Path is where the socket is made. One that a process has left there is removed; anything else there is an error.
	Path string
	// Admit says who has the token, with which rights; an error refuses the connection. Credential names the token.
	Admit func(ctx context.Context, token string) (Arrival, error)
	// Good reports whether the token that a credential names still lets in; an error keeps those who are in.
	Good func(ctx context.Context, credential string) (bool, error)
}

// tokenDoor is one that is open.
type tokenDoor struct {
	TokenDoor
	rows *rows

	mu     sync.Mutex
	conns  map[net.Conn]bool
	counts map[string]int // of connections, by credential
}

// Listen makes the socket. Everybody on this machine may connect to it; who has no token is not let in.
func (t TokenDoor) Listen(ctx context.Context) (net.Listener, error) {
	if info, err := os.Lstat(t.Path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", t.Path); err == nil {
			return nil, errors.Join(errors.New("another process serves there"), conn.Close())
		}
		if err := os.Remove(t.Path); err != nil {
			return nil, err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", t.Path)
	if err != nil {
		return nil, err
	}
	const everybody = 0o666
	if err := os.Chmod(t.Path, everybody); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Serve serves a listener until ctx ends; then it waits for calls that write, for Limits.End at most.
func (t TokenDoor) Serve(ctx context.Context, listener net.Listener) {
	d := &tokenDoor{TokenDoor: t, rows: newRows(t.Host), conns: map[net.Conn]bool{}, counts: map[string]int{}}
	var served sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	served.Go(func() { d.keepLooking(ctx) })
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if conn != nil {
				_ = conn.Close()
			}
			break
		}
		if err != nil {
			time.Sleep(lookPause) // too many files are open, for instance
			continue
		}
		if !d.enter(conn) {
			_ = conn.Close() // the connector tries again later
			continue
		}
		served.Go(func() {
			defer d.leave(conn)
			d.serve(ctx, conn)
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); served.Wait() }()
	select {
	case <-done:
	case <-time.After(t.Host.options.Limits.End):
	}
}

// lookPause is how long a listener that cannot accept waits.
const lookPause = 50 * time.Millisecond

func (d *tokenDoor) enter(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.conns) >= maxTokenConnections {
		return false
	}
	d.conns[conn] = true
	return true
}

func (d *tokenDoor) leave(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, conn)
	_ = conn.Close()
}

// take counts a connection of a credential; false if it has as many as it may have.
func (d *tokenDoor) take(credential string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts[credential] >= d.Host.options.Limits.Connections {
		return false
	}
	d.counts[credential]++
	return true
}

func (d *tokenDoor) give(credential string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts[credential]--; d.counts[credential] <= 0 {
		delete(d.counts, credential)
	}
}

// serve does the handshake of a connection, and then serves it.
func (d *tokenDoor) serve(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(d.Host.options.Limits.Handshake)); err != nil {
		return
	}
	peer, err := d.Host.options.Credentials(conn)
	if peer.Release != nil {
		defer peer.Release()
	}
	if err != nil {
		peer = Peer{} // the token is what counts
	}
	in := bufio.NewReaderSize(conn, connect.MaxHello)
	arrival, refused := d.judge(ctx, in)
	if refused != nil {
		d.refuse(ctx, conn, peer, refused, false)
		return
	}
	if !d.take(arrival.Credential) {
		d.refuse(ctx, conn, peer, fault.New(fault.LimitReached, "this token has %d connections already, and can have no more",
			d.Host.options.Limits.Connections), true)
		return
	}
	defer d.give(arrival.Credential)
	if !answer(conn, connect.Answer{OK: true}) || conn.SetDeadline(time.Time{}) != nil || ctx.Err() != nil {
		return
	}
	arrival.Way, arrival.Peer = "unix", peer.String()
	if err := d.Host.Serve(ctx, arrival, &buffered{conn, in}, conn); err != nil {
		d.Host.options.Log.Warn("an agent's connection ended with an error", "credential", arrival.Credential, "error", err)
	}
}

// judge reads who is there, and finds what their token lets them do.
func (d *tokenDoor) judge(ctx context.Context, in *bufio.Reader) (Arrival, *fault.Error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return Arrival{}, fault.Wrap(err, fault.Unauthenticated, "the handshake did not come in time, or is longer than %d bytes", connect.MaxHello)
	}
	hello, err := readHello(line)
	if err != nil {
		return Arrival{}, fault.Wrap(err, fault.Unauthenticated, "the handshake cannot be read; connect with claudeops-connect of the same release")
	}
	arrival, err := d.Admit(ctx, hello.Ticket)
	if err != nil {
		return Arrival{}, fault.From(err)
	}
	arrival.Rights = arrival.Rights.Lower(hello.Lower)
	return arrival, nil
}

func (d *tokenDoor) refuse(ctx context.Context, conn net.Conn, peer Peer, why *fault.Error, retry bool) {
	if ctx.Err() == nil {
		d.rows.refused(ctx, Rights{}, peer, why)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	answer(conn, connect.Answer{Code: string(why.Code), Message: why.Message, Retry: retry})
}

func answer(conn net.Conn, a connect.Answer) bool {
	a.Version = connect.Version
	line, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	return err == nil
}

// keepLooking ends connections whose token was revoked or has expired.
func (d *tokenDoor) keepLooking(ctx context.Context) {
	ticker := time.NewTicker(tokenLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, c := range d.Host.Connections() {
			if c.Credential == "" {
				continue
			}
			if good, err := d.Good(ctx, c.Credential); err == nil && !good {
				d.Host.options.Log.Info("an agent is cut off: its token is good no more", "connection", c.ID, "credential", c.Credential)
				d.Host.Cut(c.ID)
			}
		}
	}
}

// String names the door for people.
func (t TokenDoor) String() string { return fmt.Sprintf("unix:%s", t.Path) }
