package door

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/base/fault"
)

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
			t.serve(ctx, conn)
		})
	})
	t.Tokens.host.end(&served)
}

// serve does the handshake of a connection, and then serves it.
func (t TokenDoor) serve(ctx context.Context, conn net.Conn) {
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
	in := bufio.NewReaderSize(conn, connect.MaxHello)
	hello, refused := greeted(in)
	if refused != nil {
		t.Tokens.Refused(ctx, "unix", peer, refused)
	}
	var arrival Arrival
	if refused == nil {
		var done func()
		if arrival, done, refused = t.Tokens.Admit(ctx, hello, "unix", peer); refused == nil {
			defer done()
		}
	}
	if refused != nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		answer(conn, connect.Answer{Code: string(refused.Code), Message: refused.Message,
			Retry: refused.Code == fault.LimitReached})
		return
	}
	if !answer(conn, connect.Answer{OK: true}) || conn.SetDeadline(time.Time{}) != nil || ctx.Err() != nil {
		return
	}
	if err := host.Serve(ctx, arrival, &buffered{conn, in}, conn); err != nil {
		host.options.Log.Warn("an agent's connection ended with an error", "credential", arrival.Credential, "error", err)
	}
}

// greeted reads a handshake.
func greeted(in *bufio.Reader) (connect.Hello, *fault.Error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return connect.Hello{}, fault.Wrap(err, fault.Unauthenticated,
			"the handshake did not come in time, or is longer than %d bytes", connect.MaxHello)
	}
	return ReadHello(line)
}

func answer(conn net.Conn, a connect.Answer) bool {
	a.Version = connect.Version
	line, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	return err == nil
}
