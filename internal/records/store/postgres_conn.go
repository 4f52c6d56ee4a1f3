package store

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Settings that a connection starts with, since poolers know them. All others are set once it is there: a pooler
// refuses a start with a setting that it does not know.
func startSettings() []string { return []string{applicationName, "client_encoding", "options"} }

// setAfterConnect has connections made with the start's settings alone, and the others set at once.
func setAfterConnect(config *pgx.ConnConfig) {
	settings := maps.Clone(config.RuntimeParams)
	maps.DeleteFunc(settings, func(name, _ string) bool { return slices.Contains(startSettings(), name) })
	for name := range settings {
		delete(config.RuntimeParams, name)
	}
	names := slices.Sorted(maps.Keys(settings))
	var calls []string
	var arguments [][]byte
	for _, name := range names {
		calls = append(calls, "set_config("+placeholders(len(arguments)+1, len(arguments)+2)+", false)")
		arguments = append(arguments, []byte(name), []byte(settings[name]))
	}
	if len(calls) == 0 {
		return
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.ExecParams(ctx, "SELECT "+strings.Join(calls, ", "), arguments, nil, nil, nil).Read().Err
	}
}

// boundSilence ends a connection whose server, or what is on the way to it, takes or sends nothing for longer than
// limit while a statement waits.
func boundSilence(config *pgx.ConnConfig, limit time.Duration) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, limit: limit}, nil
	}
}

// boundedConn fails a read or write that waits for longer than limit, with os.ErrDeadlineExceeded, or until the
// deadline that was set if that is earlier.
type boundedConn struct {
	net.Conn
	limit time.Duration

	mu  sync.Mutex
	set time.Time // the deadline of the caller; zero for none
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if err := c.arm(nil); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *boundedConn) Write(b []byte) (int, error) {
	if err := c.arm(nil); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn. It also ends a read or write that has begun.
func (c *boundedConn) SetDeadline(t time.Time) error { return c.arm(&t) }

// arm sets the deadline of the connection; set, if not nil, is the caller's from now on.
func (c *boundedConn) arm(set *time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set != nil {
		c.set = *set
	}
	deadline := time.Now().Add(c.limit)
	if !c.set.IsZero() && c.set.Before(deadline) {
		deadline = c.set
	}
	return c.Conn.SetDeadline(deadline)
}

// serverClock tells the time of the server, by how much has passed since it was asked. The host's clock, which may be
// wrong or be set meanwhile, has no part in it.
type serverClock struct {
	mu     sync.Mutex
	server time.Time // what the server said; zero before that
	local  time.Time // when it did
}

// ask asks the server.
func (c *serverClock) ask(ctx context.Context, conn *pgx.Conn) error {
	const half = 2
	var server time.Time
	sent := time.Now()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.local = server.UTC(), sent.Add(time.Since(sent)/half)
	return nil
}

// now returns the time of the server; known is false if it was not asked yet.
func (c *serverClock) now() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.local)), !c.server.IsZero()
}
