package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
)

// Bounds of agents with tokens.
const (
	maxTokenConnections = 1024 // at the same time, of all tokens, with those in their handshake
	leaveLook           = 20 * time.Millisecond
)

// Tokens admits agents that the operator has given a token each, over any transport. Its bounds apply to all transports
// together. It is safe for concurrent use.
type Tokens struct {
	host *Host
	// admit says who has a token, with which rights; an error refuses the connection. Credential names the token.
	admit func(ctx context.Context, token string) (AuthenticatedConn, error)
	// gone returns which of some credentials name tokens that are good no more; an error keeps open connections.
	gone func(ctx context.Context, credentials []string) ([]string, error)

	mu      sync.Mutex
	rows    map[string]*rows // by transport, so that strangers at one leave room for those at another
	in      int              // connections, with those in their handshake
	holders map[string]*holder
}

// holder is the state shared by the connections of one credential. It outlasts them, so that reconnecting does not
// reset the limits.
type holder struct {
	open     int     // connections
	arrivals *Budget // of connections
	sends    *Budget
	told     time.Time // when it was recorded last that one was refused
}

// NewTokens makes Tokens. admit says who has a token, with which rights; an error refuses the connection. gone returns
// which of some credentials name tokens that are good no more, and is called once for all connections at a time; an
// error keeps them.
func NewTokens(h *Host, admit func(ctx context.Context, token string) (AuthenticatedConn, error),
	gone func(ctx context.Context, credentials []string) ([]string, error)) *Tokens {
	return &Tokens{host: h, admit: admit, gone: gone, rows: map[string]*rows{}, holders: map[string]*holder{}}
}

// Host serves the admitted connections.
func (t *Tokens) Host() *Host { return t.host }

// Enter counts a connection in, before its handshake; false if there are too many. Leave counts it out.
func (t *Tokens) Enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in >= maxTokenConnections {
		return false
	}
	t.in++
	return true
}

// Leave counts a connection out that Enter has counted in.
func (t *Tokens) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in--
}

// Admit finds what the ticket of a handshake, which is a token, lets its holder do, and counts the connection for that
// token until done is called. way and peer are those of the Connection. A refusal is recorded, and done is nil then;
// limit_reached may pass, and is recorded once an hour for each token.
func (t *Tokens) Admit(ctx context.Context, hello stdioproxy.Hello, way string, peer fmt.Stringer) (a AuthenticatedConn,
	done func(),
	refused *fault.Error) {
	a, done, refused = t.Count(ctx, hello.Ticket, way, peer)
	a.Rights = a.Rights.Lower(hello.Lower)
	return a, done, refused
}

// Count is Admit for a token that comes without a handshake.
func (t *Tokens) Count(ctx context.Context, token, way string, peer fmt.Stringer) (a AuthenticatedConn, done func(),
	refused *fault.Error) {
	if a, refused = t.Check(ctx, token, way, peer); refused != nil {
		return AuthenticatedConn{}, nil, refused
	}
	h, refused, told := t.reserveConn(a.Credential)
	if refused != nil {
		if !told {
			t.Refused(ctx, way, peer, fault.New(refused.Code, "%s: %s", a.Credential, refused.Message))
		}
		return AuthenticatedConn{}, nil, refused
	}
	a.Budget = h.sends
	return a, sync.OnceFunc(func() { t.give(h) }), nil
}

// Check finds who has a token, and what it lets them do. A refusal is recorded.
func (t *Tokens) Check(ctx context.Context, token, way string, peer fmt.Stringer) (AuthenticatedConn, *fault.Error) {
	a, err := t.admit(ctx, token)
	if err != nil {
		refused := fault.From(err)
		t.Refused(ctx, way, peer, refused)
		return AuthenticatedConn{}, refused
	}
	a.Way, a.Peer = way, peer.String()
	return a, nil
}

// Refused records something that was refused; Limits.Rows bounds that for each transport.
func (t *Tokens) Refused(ctx context.Context, way string, peer fmt.Stringer, why *fault.Error) {
	if ctx.Err() == nil {
		t.rowsOf(way).recordRefusedConn(ctx, Rights{}, peer, why)
	}
}

func (t *Tokens) rowsOf(way string) *rows {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[way] == nil {
		t.rows[way] = newRows(t.host)
	}
	return t.rows[way]
}

// reserveConn counts a connection of a credential, or says why it may have no more, and whether that was recorded not
// long ago.
func (t *Tokens) reserveConn(credential string) (h *holder, refused *fault.Error, told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h = t.holders[credential]
	if h == nil {
		h = &holder{arrivals: t.host.NewBudget(), sends: t.host.NewBudget()}
		t.holders[credential] = h
	}
	limits := t.host.options.Limits
	if h.open >= limits.Connections {
		refused = fault.New(fault.LimitReached, "this token has %d connections already, and can have no more", h.open)
	} else if wait := h.arrivals.Take(0); wait > 0 {
		refused = fault.New(fault.LimitReached, "this token has connected %d times within an hour, and can again in %s",
			limits.Messages, wait.Truncate(time.Second)+time.Second)
		refused.RetryAfter = wait
	}
	if refused == nil {
		h.open++
		return h, nil, false
	}
	now := t.host.options.Now()
	if told = !h.told.IsZero() && now.Sub(h.told) < time.Hour; !told {
		h.told = now
	}
	return nil, refused, told
}

func (t *Tokens) give(h *holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.open--
}

// Keep ends connections whose token was revoked or has expired, within Limits.Look, until ctx ends. Then it waits until
// all have left, for Limits.End at most.
func (t *Tokens) Keep(ctx context.Context) {
	ticker := time.NewTicker(t.host.options.Limits.Look)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			t.cutRevoked(ctx)
		}
	}
	bound := time.NewTimer(t.host.options.Limits.End)
	defer bound.Stop()
	ticker.Reset(leaveLook)
	for !t.empty() {
		select {
		case <-bound.C:
			return
		case <-ticker.C:
		}
	}
}

func (t *Tokens) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in == 0
}

// cutRevoked cuts off those whose token is good no more.
func (t *Tokens) cutRevoked(ctx context.Context) {
	open := t.host.Connections()
	var credentials []string
	for _, c := range open {
		if c.Credential != "" && !slices.Contains(credentials, c.Credential) {
			credentials = append(credentials, c.Credential)
		}
	}
	if len(credentials) == 0 {
		return
	}
	gone, err := t.gone(ctx, credentials)
	if err != nil {
		return
	}
	for _, c := range open {
		if slices.Contains(gone, c.Credential) {
			t.host.options.Log.Info("an agent is cut off: its token is good no more", "connection", c.ID, "credential",
				c.Credential)
			t.host.Cut(c.ID)
		}
	}
}

// TokenDoor is a unix socket for agents that have tokens. It serves as long as its process does.
type TokenDoor struct {
	Tokens *Tokens
	// Path is the path of the socket. One that a process has left there is removed; anything else there is an error.
	Path string
}

// Listen makes the socket, and its folder if that is missing: only this user can enter it then. Everybody who can enter
// the folder may connect to the socket; a client without a token is refused.
func (t TokenDoor) Listen(ctx context.Context) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(t.Path), 0o700); err != nil {
		return nil, fmt.Errorf("its folder cannot be made: %w", err)
	}
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
	var served sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	accept(ctx, listener, func(conn net.Conn) {
		if !t.Tokens.Enter() {
			_ = conn.Close() // the connector tries again later
			return
		}
		served.Go(func() {
			defer t.Tokens.Leave()
			defer func() { _ = conn.Close() }()
			t.serveConn(ctx, conn)
		})
	})
	t.Tokens.host.waitServed(&served)
}

// serveConn does the handshake of a connection, and then serves it.
func (t TokenDoor) serveConn(ctx context.Context, conn net.Conn) {
	host := t.Tokens.host
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(host.options.Limits.Handshake)); err != nil {
		return
	}
	peer, err := host.options.Credentials(conn)
	if peer.Release != nil {
		defer peer.Release()
	}
	if err != nil {
		peer = Peer{} // the token decides
	}
	in := bufio.NewReaderSize(conn, stdioproxy.MaxHello)
	hello, refused := greeted(in)
	if refused != nil {
		t.Tokens.Refused(ctx, "unix", peer, refused)
	}
	var arrival AuthenticatedConn
	if refused == nil {
		var done func()
		if arrival, done, refused = t.Tokens.Admit(ctx, hello, "unix", peer); refused == nil {
			defer done()
		}
	}
	if refused != nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		sendAnswer(conn, stdioproxy.Answer{Code: string(refused.Code), Message: refused.Message,
			Retry: refused.Code == fault.LimitReached})
		return
	}
	if !sendAnswer(conn, stdioproxy.Answer{OK: true}) || conn.SetDeadline(time.Time{}) != nil || ctx.Err() != nil {
		return
	}
	if err := host.Serve(ctx, arrival, &buffered{conn, in}, conn); err != nil {
		host.options.Log.Warn("an agent's connection ended with an error", "credential", arrival.Credential, "error", err)
	}
}

// greeted reads a handshake.
func greeted(in *bufio.Reader) (stdioproxy.Hello, *fault.Error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return stdioproxy.Hello{}, fault.Wrap(err, fault.Unauthenticated,
			"the handshake did not come in time, or is longer than %d bytes", stdioproxy.MaxHello)
	}
	return ReadHello(line)
}

func sendAnswer(conn net.Conn, a stdioproxy.Answer) bool {
	a.Version = stdioproxy.Version
	line, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	return err == nil
}
