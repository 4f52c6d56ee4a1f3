package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Bounds of the session that holds the locks.
const (
	sessionTimeout   = 5 * time.Second        // of what is said on it
	sessionLook      = 500 * time.Millisecond // how often it is looked at
	sessionPing      = 10 * time.Second       // how often it is asked for an answer
	sessionRetry     = time.Second            // how long a failure to make it is that of all calls
	settleAfterOwn   = 15 * time.Second       // how long others have to come back, after this process had to
	sessionLockWait  = "3s"                   // for a lock that the session before still holds
	connectAndSetUp  = connectTimeout + sessionTimeout
	poolerLooks      = 3
	microsOfASession = `SELECT pid, (EXTRACT(EPOCH FROM backend_start) * 1000000)::int8 FROM pg_stat_activity WHERE pid = pg_backend_pid()`
)

// sessionLocks are locks between processes that share a PostgreSQL database: advisory locks on a connection of their
// own, which is made when the database is opened, and made anew whenever it ends. The server drops the locks when that
// session ends; a new one takes all that are held again, and nothing is written before it has.
//
// Until then another process may find a lock that has ended, and take the work over. The ledger fences this one off:
// its next Advance or Finish gives conflict. A newer program may bring the tables up to date; then this one stops.
type sessionLocks struct {
	db     *database
	engine *postgresEngine

	outdated atomic.Pointer[fault.Error] // a newer program has changed the tables
	stop     context.CancelFunc          // ends keep
	stopped  chan struct{}               // closed when keep has ended

	turn       chan struct{} // has a token while somebody looks at the fields below
	conn       *pgx.Conn     // nil while there is none
	self       serverSession // of conn, or of the last one
	answeredAt time.Time     // when conn last answered
	held       map[string]bool
	remade     time.Time // when conn was made after one had ended
	failed     error     // of the last attempt to make one
	tried      time.Time
	closed     bool
}

// serverSession tells a session of the server apart from later ones with its number. The zero value is none.
type serverSession struct{ pid, begun int64 }

func newSessionLocks(d *database, e *postgresEngine) *sessionLocks {
	return &sessionLocks{db: d, engine: e, held: map[string]bool{}, turn: make(chan struct{}, 1)}
}

// lockKey returns the number of the advisory lock.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte("claudeops process " + name))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any 64 bits will do
}

// enter makes the session, by which others know that this process uses the tables, and keeps it from then on.
func (l *sessionLocks) enter(ctx context.Context) error {
	if err := l.ready(ctx); err != nil {
		return err
	}
	if err := l.refuseSharedSession(ctx); err != nil {
		return errors.Join(err, l.close())
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.stopped = stop, make(chan struct{})
	go l.monitorSession(keeping)
	return nil
}

// lock waits for the fields of l.
func (l *sessionLocks) lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *sessionLocks) unlock() { <-l.turn }

// monitorSession looks at the session again and again, and makes it anew when it has ended.
func (l *sessionLocks) monitorSession(ctx context.Context) {
	defer close(l.stopped)
	look := time.NewTicker(sessionLook)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if l.lock(ctx) != nil {
			return
		}
		if l.conn != nil && !l.answers() {
			_ = l.drop() // it has ended
		}
		_ = l.connect() // the next look tries again; until then, calls that write have the error
		l.unlock()
	}
}

// answers reports whether the session is alive.
func (l *sessionLocks) answers() bool {
	if time.Since(l.answeredAt) < sessionPing {
		return l.conn.PgConn().CheckConn() == nil //nolint:staticcheck // Ping asks the server, at every look
	}
	ctx, cancel := sessionContext()
	defer cancel()
	l.answeredAt = time.Now()
	return l.db.server.syncClock(ctx, l.conn) == nil
}

// ready reports why nothing may be written, and makes the session if it has ended.
func (l *sessionLocks) ready(ctx context.Context) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	return l.connect()
}

func (l *sessionLocks) usable() error {
	if outdated := l.outdated.Load(); outdated != nil {
		return outdated
	}
	return nil
}

// connect makes the session if there is none.
func (l *sessionLocks) connect() error {
	switch {
	case l.closed:
		return errors.New("the store is closed")
	case l.usable() != nil:
		return l.usable()
	case l.conn != nil:
		return nil
	case l.failed != nil && time.Since(l.tried) < sessionRetry:
		return l.failed
	}
	// The caller's context is not used: all locks depend on the session, and pgx ends one whose context ends.
	ctx, cancel := context.WithTimeout(context.Background(), connectAndSetUp)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, l.engine.config)
	if err == nil {
		if err = l.setUp(ctx, conn); err != nil {
			err = errors.Join(err, conn.Close(ctx))
		}
	}
	l.failed, l.tried = err, time.Now()
	if err != nil {
		return err
	}
	l.conn, l.answeredAt = conn, time.Now()
	return nil
}

// setUp takes what a session of ours holds: its presence, and the locks that this process had when the last one ended.
func (l *sessionLocks) setUp(ctx context.Context, conn *pgx.Conn) error {
	var self serverSession
	if err := conn.QueryRow(ctx, microsOfASession).Scan(&self.pid, &self.begun); err != nil {
		return err
	}
	// The session is idle for long, and must not be ended for that.
	const keep = `SELECT set_config('lock_timeout', $1, false), (SELECT set_config(name, '0', false) FROM pg_settings
		WHERE name = 'idle_session_timeout')`
	if _, err := conn.Exec(ctx, keep, sessionLockWait); err != nil {
		return err
	}
	again := l.self != serverSession{}
	if again { // the server may not have noticed its end, and still keep its locks
		const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid = $1 AND (EXTRACT(EPOCH FROM backend_start) * 1000000)::int8 = $2`
		if _, err := conn.Exec(ctx, end, l.self.pid, l.self.begun); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, presenceLock, presenceID); err != nil {
		return err
	}
	if again {
		if err := l.engine.checkVersion(ctx, conn); err != nil {
			var newer *fault.Error
			if errors.As(err, &newer) {
				l.outdated.Store(newer)
			}
			return err
		}
	}
	for name := range l.held {
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, lockKey(name)); err != nil {
			return err
		}
	}
	if err := l.db.server.syncClock(ctx, conn); err != nil {
		return err
	}
	if again {
		l.remade = time.Now()
	}
	l.self = self
	return nil
}

// refuseSharedSession refuses a pooler that lends the session to others between our transactions.
func (l *sessionLocks) refuseSharedSession(ctx context.Context) error {
	for range poolerLooks {
		tx, err := l.engine.beginRead(ctx)
		if err != nil {
			return err
		}
		var other, own int64
		err = tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&other)
		if err == nil {
			err = l.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&own)
		}
		if err = errors.Join(err, ignoreDone(tx.Rollback())); err != nil {
			return err
		}
		if other == l.self.pid || own != l.self.pid {
			return fault.New(fault.Misconfigured, "the PostgreSQL database %s is behind a pooler in transaction mode, which "+
				"lends one connection to several programs; let it pool sessions (pgbouncer: pool_mode = session), or name the "+
				"server itself in CLAUDEOPS_DATABASE_URL", l.engine.name())
		}
	}
	return nil
}

func (l *sessionLocks) acquire(ctx context.Context) (string, error) {
	if err := l.lock(ctx); err != nil {
		return "", err
	}
	defer l.unlock()
	name := l.db.opts.NewID()
	taken, err := l.tryLock(name)
	if err != nil && l.conn != nil && l.conn.IsClosed() { // it had ended
		_ = l.drop()
		taken, err = l.tryLock(name)
	}
	if err == nil && !taken {
		err = errors.New("another process has a lock of the same name")
	}
	if err != nil {
		return "", err
	}
	l.held[name] = true
	return name, nil
}

func (l *sessionLocks) tryLock(name string) (taken bool, err error) {
	if err := l.connect(); err != nil {
		return false, err
	}
	ctx, cancel := sessionContext()
	defer cancel()
	err = l.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey(name)).Scan(&taken)
	return taken, err
}

// sessionContext returns a context for statements on the session that must not end with their caller.
func sessionContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), sessionTimeout)
}

// released reads the locks rather than trying them: a process that tries a lock holds it for a moment, and looks like
// its holder. For a while after this process has lost its own session none counts as ended: the same cause may have
// ended the sessions of others, which come back.
func (l *sessionLocks) released(ctx context.Context, names []string) (map[string]bool, error) {
	taken, err := l.taken(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	out := make(map[string]bool, len(names))
	cutOff := l.conn == nil || !l.remade.IsZero() && time.Since(l.remade) < settleAfterOwn
	for _, name := range names {
		out[name] = !cutOff && !l.held[name] && !taken[lockKey(name)]
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
	_ = l.lock(context.Background()) // the context does not end
	defer l.unlock()
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
	if l.stop != nil {
		l.stop()
		<-l.stopped
	}
	_ = l.lock(context.Background()) // the context does not end
	defer l.unlock()
	clear(l.held)
	l.closed = true
	return l.drop()
}

// drop gives the session up.
func (l *sessionLocks) drop() error {
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn = nil
	ctx, cancel := sessionContext()
	defer cancel()
	return conn.Close(ctx)
}
