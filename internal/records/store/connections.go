package store

import (
	"context"
	"database/sql"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// keepCut is how long the record of a connection that was cut off is kept after its end.
const keepCut = 24 * time.Hour

// Connections are the agents that are connected to processes. Each has a lock of its own, so that those whose process
// was killed are recognised; see locks.
type Connections struct {
	db   *database
	held *heldLocks
}

const connectionColumns = "id, session, credential, tier, dry_run, read_only, way, peer, since_us, calls, cut_us, cut_by"

// OpenConnection records a connection that this process serves.
func (s *Connections) OpenConnection(ctx context.Context, c record.Connection) error {
	return s.held.acquireAndRecord(ctx, c.ID, func(lock string) (bool, error) {
		err := s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			const forget = "DELETE FROM agent_connections WHERE ended_us < $1"
			if _, err := tx.ExecContext(ctx, forget, micros(s.db.now().Add(-keepCut))); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO agent_connections (process, "+connectionColumns+") VALUES ("+
				placeholders(1, 13)+")",
				textColumn(lock), textColumn(c.ID), textColumn(c.Session), textColumn(c.Credential), int64(c.Tier),
				asNumber(c.DryRun),
				asNumber(c.ReadOnly), textColumn(c.Way),
				textColumn(bound(c.Peer, maxWord)), micros(c.Since), int64(c.Calls), timeColumn(&c.CutAt), textColumn(c.CutBy))
			return err
		})
		return err == nil, err
	})
}

// HeedConnections records how many calls are under way in connections that this process serves, by their ids, and
// reports for each whether somebody has cut it off. It leaves out those that are not recorded any more: this process
// lost their locks, and counts as ended.
func (s *Connections) HeedConnections(ctx context.Context, calls map[string]int) (cut map[string]bool, err error) {
	cut, changed := map[string]bool{}, []string{}
	err = s.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var id string
			var recorded int64
			var isCut bool
			if err := rows.Scan(&id, &recorded, &isCut); err != nil {
				return err
			}
			if now, ours := calls[id]; ours {
				cut[id] = isCut
				if int64(now) != recorded {
					changed = append(changed, id)
				}
			}
			return nil
		}, "SELECT id, calls, cut_us IS NOT NULL FROM agent_connections")
	})
	if err != nil || len(changed) == 0 {
		return cut, err
	}
	return cut, s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, id := range changed {
			const update = "UPDATE agent_connections SET calls = $1 WHERE id = $2"
			if _, err := tx.ExecContext(ctx, update, int64(calls[id]), textColumn(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// IsCut reports whether somebody has cut off the connection, or another one of its session; session may be "".
func (s *Connections) IsCut(ctx context.Context, id, session string) (bool, error) {
	var one int
	return s.db.first(ctx, []any{&one},
		`SELECT 1 FROM agent_connections WHERE cut_us IS NOT NULL AND (id = $1 OR session <> '' AND session = $2) LIMIT 1`,
		textColumn(id), textColumn(session))
}

// CloseConnection records that a connection is over. One that was cut off is kept for a while.
func (s *Connections) CloseConnection(ctx context.Context, id string) error {
	err := s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.over(ctx, tx, id) })
	s.held.forget(id)
	return err
}

func (s *Connections) over(ctx context.Context, tx *sql.Tx, id string) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM agent_connections WHERE id = $1 AND cut_us IS NULL",
		textColumn(id)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE agent_connections SET ended_us = $1 WHERE id = $2 AND ended_us IS NULL",
		micros(s.db.now()), textColumn(id))
	return err
}

// Connections lists those that are open, of all processes, the oldest first.
func (s *Connections) Connections(ctx context.Context) ([]record.Connection, error) {
	type served struct {
		record.Connection
		lock string
	}
	rows, err := selectOf(ctx, s.db, func(rows *sql.Rows, c *served) error {
		var tier, dryRun, readOnly, calls int64
		err := rows.Scan((*textColumn)(&c.lock), (*textColumn)(&c.ID), (*textColumn)(&c.Session),
			(*textColumn)(&c.Credential), &tier, &dryRun,
			&readOnly, (*textColumn)(&c.Way),
			(*textColumn)(&c.Peer), timeColumn(&c.Since), &calls, timeColumn(&c.CutAt), (*textColumn)(&c.CutBy))
		c.Tier, c.DryRun, c.ReadOnly, c.Calls = gitprovider.Tier(tier), dryRun != 0, readOnly != 0, int(calls)
		return err
	}, "SELECT process, "+connectionColumns+" FROM agent_connections WHERE ended_us IS NULL ORDER BY since_us, id")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	locks := make([]string, len(rows))
	for i, r := range rows {
		locks[i] = r.lock
	}
	ended, err := s.db.endedLocks(ctx, locks)
	if err != nil {
		return nil, err
	}
	var open []record.Connection
	gone := map[string]string{} // id by lock
	for _, r := range rows {
		if ended[r.lock] {
			gone[r.lock] = r.ID
			continue
		}
		open = append(open, r.Connection)
	}
	if len(gone) == 0 || s.db.held(ctx) != nil { // one that reads does not write; the next listing does
		return open, nil
	}
	return open, s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		ended, err := s.db.endedLocks(ctx, slices.Collect(maps.Keys(gone))) // of now: a process may have come back
		for lock, id := range gone {
			if err == nil && ended[lock] {
				err = s.over(ctx, tx, id)
			}
		}
		return err
	})
}

// CutConnection has the process that serves a connection end it, and appends the rows to the audit; not_found if none
// with the id is open. Cutting off twice is not an error: the first time counts.
func (s *Connections) CutConnection(ctx context.Context, id, by string, rows ...record.Attempt) error {
	open, err := s.Connections(ctx) // without those whose process was killed
	if err != nil {
		return err
	}
	for _, c := range open {
		if c.ID == id {
			return s.requestCut(ctx, id, by, rows)
		}
	}
	return notConnected(id)
}

func (s *Connections) requestCut(ctx context.Context, id, by string, rows []record.Attempt) error {
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const update = `UPDATE agent_connections SET cut_by = CASE WHEN cut_us IS NULL THEN $1 ELSE cut_by END, cut_us = COALESCE(cut_us, $2)
			WHERE id = $3 AND ended_us IS NULL`
		known, err := changesOne(tx.ExecContext(ctx, update, textColumn(by), micros(s.db.now()), textColumn(id)))
		if err == nil && !known {
			err = notConnected(id)
		}
		if err != nil {
			return err
		}
		return s.db.appendAll(ctx, tx, rows)
	})
}

func notConnected(id string) error {
	return fault.New(fault.NotFound,
		"no agent is connected under the id %q; `claudeops connections list` shows those that are", bound(id, maxWord))
}

// LastCuts returns, by the name of a token, when a connection of it was last cut off in the last day.
func (s *Connections) LastCuts(ctx context.Context) (map[string]time.Time, error) {
	cuts := map[string]time.Time{}
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var credential textColumn
		var when time.Time
		err := rows.Scan(&credential, timeColumn(&when))
		cuts[string(credential)] = when
		return err
	}, "SELECT credential, MAX(cut_us) FROM agent_connections WHERE cut_us IS NOT NULL GROUP BY credential")
	return cuts, err
}

// ConnectionsVersion returns a number that changes when an agent connects, goes, or is cut off, and with its calls
// under way.
func (s *Connections) ConnectionsVersion(ctx context.Context) (int64, error) {
	version := fnv.New64a()
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var id textColumn
		var calls int64
		var cut bool
		err := rows.Scan(&id, &calls, &cut)
		// never fails
		_, _ = version.Write([]byte(string(id) + " " + strconv.FormatInt(calls, 10) + " " + strconv.FormatBool(cut) + "\n"))
		return err
	}, "SELECT id, calls, cut_us IS NOT NULL FROM agent_connections WHERE ended_us IS NULL ORDER BY id")
	const positive = 1<<63 - 1
	return int64(version.Sum64() & positive), err //nolint:gosec // the sign bit is off
}
