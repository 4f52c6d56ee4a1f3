package store

import (
	"context"
	"database/sql"
	"hash/fnv"
	"strconv"
)

// This file tells those who watch sessions what has changed.

// SessionsVersion is a number that changes when a session begins, says something or ends. It is cheap: it looks at the
// sessions that run and at the newest one.
func (s *Store) SessionsVersion(ctx context.Context) (int64, error) {
	const last = `(SELECT COALESCE(MAX(e.seq), 0) FROM agent_session_events e WHERE e.session = s.id)`
	version := fnv.New64a()
	err := s.each(ctx, func(rows *sql.Rows) error {
		var id, state text
		var seq int
		err := rows.Scan(&id, &state, &seq)
		_, _ = version.Write([]byte(string(id) + " " + string(state) + " " + strconv.Itoa(seq) + "\n")) // never fails
		return err
	}, `SELECT s.id, s.state, `+last+` FROM agent_sessions s WHERE s.state = 'running'
		UNION SELECT s.id, s.state, `+last+` FROM agent_sessions s WHERE s.id = (SELECT MAX(id) FROM agent_sessions) ORDER BY 1`)
	const positive = 1<<63 - 1
	return int64(version.Sum64() & positive), err //nolint:gosec // the sign bit is off
}

// LastSessionEvent is the number of a session's last event; 0 if it has none.
func (s *Store) LastSessionEvent(ctx context.Context, id string) (seq int, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error { return rows.Scan(&seq) },
		"SELECT COALESCE(MAX(seq), 0) FROM agent_session_events WHERE session = $1", text(bound(id, maxWord)))
	return seq, err
}

// SessionsVersion is Store.SessionsVersion.
func (l *Lazy) SessionsVersion(ctx context.Context) (int64, error) {
	return get(ctx, l, func(s *Store) (int64, error) { return s.SessionsVersion(ctx) })
}

// LastSessionEvent is Store.LastSessionEvent.
func (l *Lazy) LastSessionEvent(ctx context.Context, id string) (int, error) {
	return get(ctx, l, func(s *Store) (int, error) { return s.LastSessionEvent(ctx, id) })
}
