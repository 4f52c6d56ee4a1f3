package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// sessionTimeout bounds what is said on a connection that may be dead.
const sessionTimeout = 5 * time.Second

// sessionLocks are locks between processes that share a PostgreSQL database: advisory locks on a connection of their
// own, which is made when the database is opened, and stays. The server drops them when that session ends.
//
// A process also loses its locks when only its connection ends: the network was cut, or the server restarted. It may
// then still be writing to a provider while another process settles its proposal. The ledger fences it off: its next
// Advance or Finish gives conflict.
type sessionLocks struct {
	db     *database
	engine *postgresEngine

	mu   sync.Mutex
	conn *pgx.Conn // nil before enter
	held map[string]bool
}

func newSessionLocks(d *database, e *postgresEngine) *sessionLocks {
	return &sessionLocks{db: d, engine: e, held: map[string]bool{}}
}

// lockKey is the number of the advisory lock.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte("claudeops process " + name))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any 64 bits will do
}

func (l *sessionLocks) acquire(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.connect(ctx); err != nil {
		return "", err
	}
	name := l.db.opts.NewID()
	ctx, cancel := sessionContext()
	defer cancel()
	var taken bool
	err := l.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey(name)).Scan(&taken)
	if err == nil && !taken {
		err = errors.New("another process has a lock of the same name")
	}
	if err != nil {
		return "", err
	}
	l.held[name] = true
	return name, nil
}

// enter makes the connection, by which others know that this process uses the tables.
func (l *sessionLocks) enter(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connect(ctx)
}

// connect makes the connection if there is none that is alive.
func (l *sessionLocks) connect(ctx context.Context) error {
	if l.conn != nil {
		ping, cancel := sessionContext()
		defer cancel()
		if l.conn.Ping(ping) == nil {
			return nil
		}
		_ = l.disconnect()
	}
	conn, err := pgx.ConnectConfig(ctx, l.engine.config)
	if err != nil {
		return err
	}
	// The session is idle for long, and must not be ended for that.
	const keep = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'`
	if _, err := conn.Exec(ctx, keep); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	if _, err := conn.Exec(ctx, presenceLock, presenceID); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	l.conn = conn
	return nil
}

// sessionContext is for what is said on the connection: pgx closes one whose context ends, and all locks depend on it,
// so the caller's context is not used.
func sessionContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), sessionTimeout)
}

// ended looks at the locks rather than trying them: whoever tries one holds it for a moment, and is taken for its
// holder.
func (l *sessionLocks) ended(ctx context.Context, names []string) (map[string]bool, error) {
	taken, err := l.taken(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = !l.held[name] && !taken[lockKey(name)]
	}
	return out, nil
}

// taken returns the keys of all advisory locks of this database that have one number. The server shows the locks of
// now, whatever the transaction sees of the tables.
func (l *sessionLocks) taken(ctx context.Context) (map[int64]bool, error) {
	keys := map[int64]bool{}
	err := l.db.query(ctx, func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		keys[key] = true
		return err
	}, `SELECT classid::int8 << 32 | objid::int8 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	return keys, err
}

func (l *sessionLocks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held[name] {
		return
	}
	delete(l.held, name)
	if l.conn != nil {
		ctx, cancel := sessionContext()
		defer cancel()
		// fails on a connection that has ended, and the lock with it
		_, _ = l.conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, lockKey(name))
	}
}

func (l *sessionLocks) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.held)
	return l.disconnect()
}

func (l *sessionLocks) disconnect() error {
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn = nil
	ctx, cancel := sessionContext()
	defer cancel()
	return conn.Close(ctx)
}
