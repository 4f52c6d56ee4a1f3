package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// sessionTimeout bounds what is said on a connection that may be dead.
const sessionTimeout = 5 * time.Second

// sessions is the presence of processes that share a PostgreSQL database: each store that makes proposals holds an
// advisory lock of its own on a connection of its own. The server drops it when that session ends, so a name whose lock
// nobody holds belongs to a process that is gone.
//
// A process is also taken for gone when only its connection is: the network was cut, or the server restarted. It may
// then still be writing to a provider while another process settles its proposal. The ledger fences it off: its next
// Advance or Finish gives conflict.
type sessions struct {
	engine *postgresEngine
	newID  func() string

	mu   sync.Mutex
	name string
	conn *pgx.Conn           // holds the lock of name; nil if none is held
	own  map[string]struct{} // every name this store ever had
}

func newSessions(e *postgresEngine, newID func() string) *sessions {
	return &sessions{engine: e, newID: newID, own: map[string]struct{}{}}
}

// lockKey is the number of a name's advisory lock.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte("claudeops process " + name))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any 64 bits will do
}

func (s *sessions) enter(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		// A connection whose context ends is closed, and the proposals of others depend on this one.
		ping, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionTimeout)
		err := s.conn.Ping(ping)
		cancel()
		if err == nil {
			return s.name, nil
		}
		_ = s.drop()
	}
	conn, err := pgx.ConnectConfig(ctx, s.engine.config)
	if err != nil {
		return "", err
	}
	name := s.newID()
	if err := s.lock(ctx, conn, name); err != nil {
		return "", errors.Join(err, conn.Close(ctx))
	}
	s.name, s.conn = name, conn
	s.own[name] = struct{}{}
	return name, nil
}

func (s *sessions) lock(ctx context.Context, conn *pgx.Conn, name string) error {
	// The session is idle for as long as the process lives, and must not be ended for that.
	const keep = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'`
	if _, err := conn.Exec(ctx, keep); err != nil {
		return err
	}
	var taken bool
	err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey(name)).Scan(&taken)
	if err == nil && !taken {
		err = errors.New("another process has the same name")
	}
	return err
}

// gone looks at the locks rather than trying them: whoever tries one holds it for a moment, and is taken for its owner.
func (s *sessions) gone(ctx context.Context, names []string) (map[string]bool, error) {
	held, err := s.held(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]bool, len(names))
	for _, name := range names {
		_, mine := s.own[name]
		out[name] = !mine && !held[lockKey(name)]
	}
	return out, nil
}

// held returns the keys of all advisory locks of this database that have one number.
func (s *sessions) held(ctx context.Context) (keys map[int64]bool, err error) {
	rows, err := s.engine.reader.QueryContext(ctx, `SELECT classid::int8 << 32 | objid::int8 FROM pg_locks
		WHERE locktype = 'advisory' AND objsubid = 1 AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	keys = map[int64]bool{}
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys[key] = true
	}
	return keys, rows.Err()
}

func (s *sessions) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.own, s.name)
	return s.drop()
}

// drop ends the presence under the name so far.
func (s *sessions) drop() error {
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn = nil
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return conn.Close(ctx)
}
