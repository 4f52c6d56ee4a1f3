package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Sizes of a page.
const (
	defaultSessions = 50
	maxSessions     = 200
	maxEvents       = 500
)

// AgentSessions implements session.Records. Each session that runs has a lock of its own; see locks.
type AgentSessions struct {
	db   *database
	held *heldLocks
}

// BeginSession implements session.Records.
func (s *AgentSessions) BeginSession(ctx context.Context, r sessions.Record) error {
	if r.State != sessions.StateRunning {
		return s.insert(ctx, r, "")
	}
	return s.held.acquireAndRecord(ctx, r.ID, func(lock string) (bool, error) {
		err := s.insert(ctx, r, lock)
		return err == nil, err
	})
}

func (s *AgentSessions) insert(ctx context.Context, r sessions.Record, lock string) error {
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		record, err := json.Marshal(r)
		if err == nil && r.State == sessions.StateRunning {
			err = s.db.checkPaused(ctx, tx, "", "")
		}
		if err != nil {
			return err
		}
		const insert = `INSERT INTO agent_sessions (id, state, process, record) VALUES ($1, $2, $3, $4)`
		_, err = tx.ExecContext(ctx, insert, textColumn(r.ID), textColumn(r.State), textColumn(lock), string(record))
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Internal, "a session with the id %q is recorded already", r.ID)
		}
		if err == nil {
			err = saveUsage(ctx, tx, r)
		}
		if err == nil && r.State != sessions.StateRunning {
			err = s.db.noteEnd(ctx, tx, r)
		}
		return err
	})
}

// AppendEvents implements session.Records.
func (s *AgentSessions) AppendEvents(ctx context.Context, id string, events []sessions.Event) error {
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, e := range events {
			const insert = `INSERT INTO agent_session_events (session, seq, time_us, kind, tool, body) VALUES ($1, $2, $3, $4, $5, $6)`
			_, err := tx.ExecContext(ctx, insert, textColumn(id), e.Seq, micros(e.Time), textColumn(e.Kind), textColumn(e.Tool),
				textColumn(e.Text))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SaveSession implements session.Records.
func (s *AgentSessions) SaveSession(ctx context.Context, r sessions.Record) error {
	err := s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.db.saveSession(ctx, tx, r) })
	if err == nil && r.State != sessions.StateRunning {
		s.held.forget(r.ID)
	}
	return err
}

// saveSession replaces what is recorded of a session. One that has ended does not run again: its progress comes late.
func (d *database) saveSession(ctx context.Context, tx *sql.Tx, r sessions.Record) error {
	kept, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var ran bool
	err = tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM agent_sessions WHERE id = $1 AND state = 'running')",
		textColumn(r.ID)).Scan(&ran)
	if err != nil {
		return err
	}
	const update = `UPDATE agent_sessions SET state = $1, record = $2 WHERE id = $3 AND ($1 <> 'running' OR state = 'running')`
	known, err := changesOne(tx.ExecContext(ctx, update, textColumn(r.State), string(kept), textColumn(r.ID)))
	if err == nil && !known {
		err = noSession(r.ID)
	}
	if err == nil {
		err = saveUsage(ctx, tx, r)
	}
	if err == nil && ran && r.State != sessions.StateRunning {
		err = d.noteEnd(ctx, tx, r)
	}
	return err
}

func noSession(id string) error {
	return fault.New(fault.NotFound, "there is no session %q", bound(id, maxWord))
}

// Session implements session.Records.
func (s *AgentSessions) Session(ctx context.Context, id string) (sessions.Record, error) {
	found, err := s.sessions(ctx, "WHERE id = $1", textColumn(bound(id, maxWord)))
	if err == nil && len(found) == 0 {
		err = noSession(id)
	}
	if err != nil {
		return sessions.Record{}, err
	}
	return found[0], nil
}

// Sessions implements session.Records.
func (s *AgentSessions) Sessions(ctx context.Context, q sessions.Query) ([]sessions.Record, error) {
	if q.Search != "" {
		return s.searchSessions(ctx, q)
	}
	c := conditions{texts: []string{"1 = 1"}}
	c.equals("id < $%d", q.Before)
	c.equals("id > $%d", q.After)
	c.equals("state = $%d", string(q.State))
	if q.Bad {
		c.texts = append(c.texts, "state IN ('failed', 'timeout', 'limit', 'interrupted')")
	}
	if q.Began {
		c.texts = append(c.texts, "state <> 'skipped'")
	}
	// Tier and trigger stand in the record only. No text in it can hold these patterns: its quotes are escaped.
	if q.Tier != 0 {
		c.add("record LIKE $%d", fmt.Sprintf(`%%"tier":%d,%%`, q.Tier))
	}
	if q.Trigger != "" {
		c.add("record LIKE $%d ESCAPE '!'", `%"trigger":"`+likeLiteral(bound(string(q.Trigger), maxWord))+`"%`)
	}
	limit := c.limitRows(q.Limit, defaultSessions, maxSessions)
	direction := "DESC"
	if q.Oldest {
		direction = "ASC"
	}
	return s.sessions(ctx, fmt.Sprintf("WHERE %s ORDER BY id %s LIMIT $%d", c.where(), direction, limit), c.args...)
}

// searchSessions reads the sessions that a query without its search selects, until as many as it asks for match.
func (s *AgentSessions) searchSessions(ctx context.Context, q sessions.Query) (out []sessions.Record, err error) {
	search, limit := q.Search, q.Limit
	if limit <= 0 || limit > maxSessions {
		limit = defaultSessions
	}
	q.Search, q.Limit = "", maxSessions
	for {
		rows, err := s.Sessions(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Matches(search) {
				if out = append(out, r); len(out) == limit {
					return out, nil
				}
			}
		}
		if len(rows) < maxSessions {
			return out, nil
		}
		if last := rows[len(rows)-1].ID; q.Oldest {
			q.After = last
		} else {
			q.Before = last
		}
	}
}

func (s *AgentSessions) sessions(ctx context.Context, clauses string, args ...any) ([]sessions.Record, error) {
	return selectOf(ctx, s.db, scanSession, "SELECT record FROM agent_sessions "+clauses, args...)
}

func scanSession(rows *sql.Rows, r *sessions.Record) error {
	var kept string
	if err := rows.Scan(&kept); err != nil {
		return err
	}
	return decodeSession(kept, r)
}

func decodeSession(record string, r *sessions.Record) error {
	if err := json.Unmarshal([]byte(record), r); err != nil {
		return fault.Wrap(err, fault.Internal, "a recorded session is damaged; restore a backup")
	}
	return nil
}

// SessionEvents implements session.Records.
func (s *AgentSessions) SessionEvents(ctx context.Context, id string, after int) ([]sessions.Event, error) {
	return selectOf(ctx, s.db, func(rows *sql.Rows, e *sessions.Event) error {
		return rows.Scan(&e.Seq, timeColumn(&e.Time), (*textColumn)(&e.Kind), (*textColumn)(&e.Tool), (*textColumn)(&e.Text))
	},
		`SELECT seq, time_us, kind, tool, body FROM agent_session_events WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
		textColumn(bound(id, maxWord)), after, maxEvents)
}

// SessionCounts implements session.Records.
func (s *AgentSessions) SessionCounts(ctx context.Context, id string) (counts sessions.Counts, err error) {
	err = s.db.query(ctx, func(rows *sql.Rows) error {
		var outcome textColumn
		var n int
		if err := rows.Scan(&outcome, &n); err != nil {
			return err
		}
		switch record.Outcome(outcome) {
		case record.OutcomeOpened:
			counts.Opened = n
		case record.OutcomeRevised:
			counts.Revised = n
		case record.OutcomeReused:
			counts.Reused = n
		case record.OutcomeDryRun:
			counts.DryRun = n
		case record.OutcomeRefused:
			counts.Refused = n
		case record.OutcomeFailed:
			counts.Failed = n
		}
		return nil
	}, "SELECT outcome, COUNT(*) FROM attempts WHERE session = $1 AND session <> '' GROUP BY outcome",
		textColumn(bound(id, maxWord)))
	return counts, err
}

// AskStop implements session.Records.
func (s *AgentSessions) AskStop(ctx context.Context, id string) error {
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const update = `UPDATE agent_sessions SET stop_asked_us = COALESCE(stop_asked_us, $1) WHERE id = $2 AND state = 'running'`
		known, err := changesOne(tx.ExecContext(ctx, update, micros(s.db.now()), textColumn(bound(id, maxWord))))
		if err == nil && !known {
			err = fault.New(fault.NotFound, "no session %q runs", bound(id, maxWord))
		}
		return err
	})
}

// StopAsked implements session.Records.
func (s *AgentSessions) StopAsked(ctx context.Context, id string) (asked bool, err error) {
	err = s.db.query(ctx, func(*sql.Rows) error {
		asked = true
		return nil
	}, "SELECT 1 FROM agent_sessions WHERE id = $1 AND stop_asked_us IS NOT NULL", textColumn(bound(id, maxWord)))
	return asked, err
}

// CloseInterrupted implements session.Records.
func (s *AgentSessions) CloseInterrupted(ctx context.Context) (closed []string, err error) {
	type runningSession struct{ id, lock string }
	running, err := selectOf(ctx, s.db, func(rows *sql.Rows, r *runningSession) error {
		return rows.Scan((*textColumn)(&r.id), (*textColumn)(&r.lock))
	}, "SELECT id, process FROM agent_sessions WHERE state = 'running' ORDER BY id")
	if err != nil {
		return nil, err
	}
	locks := make([]string, len(running))
	for i, r := range running {
		locks[i] = r.lock
	}
	ended, err := s.db.endedLocks(ctx, locks)
	if err != nil {
		return nil, err
	}
	for _, r := range running {
		if !ended[r.lock] {
			continue
		}
		ok, err := s.closeInterrupted(ctx, r.id, r.lock)
		if err != nil {
			return closed, err
		}
		if ok {
			closed = append(closed, r.id)
		}
	}
	return closed, nil
}

// closeInterrupted ends a session whose lock has ended, unless the process that ran it has ended it meanwhile. What it
// has saved last is kept.
func (s *AgentSessions) closeInterrupted(ctx context.Context, id, lock string) (ok bool, err error) {
	err = s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		found, err := selectRows(ctx, tx, scanSession,
			"SELECT record FROM agent_sessions WHERE id = $1 AND process = $2 AND state = 'running'", textColumn(id), textColumn(lock))
		if err != nil || len(found) == 0 {
			return err
		}
		if ended, err := s.db.endedLocks(ctx, []string{lock}); err != nil || !ended[lock] {
			return err // it was cut off from the database, and has come back
		}
		r := found[0]
		r.State, r.EndedAt = sessions.StateInterrupted, s.db.now().UTC()
		r.Reason = "the process that ran it was killed, or the machine stopped"
		if r.Counts, err = s.SessionCounts(ctx, id); err != nil {
			return err
		}
		ok = true
		return s.db.saveSession(ctx, tx, r)
	})
	return ok && err == nil, err
}

// SessionsVersion returns a number that changes when a session begins, says something or ends. It is cheap: it looks at
// the sessions that run and at the newest one.
func (s *AgentSessions) SessionsVersion(ctx context.Context) (int64, error) {
	const last = `(SELECT COALESCE(MAX(e.seq), 0) FROM agent_session_events e WHERE e.session = s.id)`
	version := fnv.New64a()
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var id, state textColumn
		var seq int
		err := rows.Scan(&id, &state, &seq)
		_, _ = version.Write([]byte(string(id) + " " + string(state) + " " + strconv.Itoa(seq) + "\n")) // never fails
		return err
	}, `SELECT s.id, s.state, `+last+` FROM agent_sessions s WHERE s.state = 'running'
		UNION SELECT s.id, s.state, `+last+` FROM agent_sessions s WHERE s.id = (SELECT MAX(id) FROM agent_sessions) ORDER BY 1`)
	const positive = 1<<63 - 1
	return int64(version.Sum64() & positive), err //nolint:gosec // the sign bit is off
}

// LastSessionEvent returns the number of a session's last event; 0 if it has none.
func (s *AgentSessions) LastSessionEvent(ctx context.Context, id string) (seq int, err error) {
	err = s.db.query(ctx, func(rows *sql.Rows) error { return rows.Scan(&seq) },
		"SELECT COALESCE(MAX(seq), 0) FROM agent_session_events WHERE session = $1", textColumn(bound(id, maxWord)))
	return seq, err
}

// AppendJournal implements session.Journal.
func (s *AgentSessions) AppendJournal(ctx context.Context, by record.Actor, at time.Time, texts []string) error {
	if by.Session == nil {
		return fault.New(fault.Internal, "only a session notes something in the journal")
	}
	id := by.Session.ID
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for i, entry := range texts {
			const insert = `INSERT INTO agent_journal (session, seq, time_us, body, actor) VALUES ($1, $2, $3, $4, $5)`
			if _, err := tx.ExecContext(ctx, insert, textColumn(id), i+1, micros(at), textColumn(entry), actor(by)); err != nil {
				return err
			}
		}
		// Sessions are sorted by time, and no table has as many rows as the limit says.
		const rest = `DELETE FROM agent_journal WHERE (session, seq) IN
			(SELECT session, seq FROM agent_journal ORDER BY session DESC, seq DESC LIMIT 1000000 OFFSET $1)`
		_, err := tx.ExecContext(ctx, rest, sessions.MaxJournal)
		return err
	})
}

// Journal implements session.Journal.
func (s *AgentSessions) Journal(ctx context.Context, q sessions.JournalQuery) ([]sessions.JournalEntry, error) {
	c := conditions{texts: []string{"1 = 1"}}
	c.equals("session = $%d", q.Session)
	limit := c.limitRows(q.Limit, sessions.MaxJournal, sessions.MaxJournal)
	return selectOf(ctx, s.db, func(rows *sql.Rows, e *sessions.JournalEntry) error {
		return rows.Scan((*textColumn)(&e.Session), timeColumn(&e.Time), (*textColumn)(&e.Text), (*actor)(&e.Actor))
	}, fmt.Sprintf("SELECT session, time_us, body, actor FROM agent_journal WHERE %s ORDER BY session DESC, seq DESC LIMIT $%d",
		c.where(), limit), c.args...)
}

// nano is the number of stored units in one USD.
const nano = 1e9

// saveUsage keeps what a session used beside its record.
func saveUsage(ctx context.Context, tx *sql.Tx, r sessions.Record) error {
	if r.State == sessions.StateSkipped {
		return nil // it never began
	}
	const save = `INSERT INTO agent_session_usage (session, day, tier, state,
			input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nano_usd, cost_source, boundary)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (session) DO UPDATE SET state = excluded.state, boundary = excluded.boundary, input_tokens = excluded.input_tokens,
			output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens,
			cache_write_tokens = excluded.cache_write_tokens, cost_nano_usd = excluded.cost_nano_usd, cost_source = excluded.cost_source`
	_, err := tx.ExecContext(ctx, save, textColumn(r.ID), r.StartedAt.UTC().Format(time.DateOnly), int64(r.Tier),
		textColumn(r.State),
		r.InputTokens, r.OutputTokens, r.CacheReadTokens, r.CacheWriteTokens, int64(math.Round(r.CostUSD*nano)),
		textColumn(r.CostSource), textColumn(boundaryOf(r)))
	return err
}

// boundaryOf returns the kind of a session's boundary; "" where it is not recorded.
func boundaryOf(r sessions.Record) string {
	if r.Boundary == nil {
		return ""
	}
	return string(r.Boundary.Kind)
}

// SessionsByBoundary counts the sessions that have ended by the kind of boundary that held; "" for those of which that
// is not recorded.
func (s *AgentSessions) SessionsByBoundary(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var kind textColumn
		var n int64
		err := rows.Scan(&kind, &n)
		counts[string(kind)] = n
		return err
	}, "SELECT boundary, COUNT(*) FROM agent_session_usage WHERE state <> 'running' GROUP BY boundary")
	return counts, err
}

// Endings counts the sessions that began on or after the day, in UTC, of a time, by how far they are or how they ended.
// Those that were skipped never began.
func (s *AgentSessions) Endings(ctx context.Context, since time.Time) (map[sessions.State]int, error) {
	counts := map[sessions.State]int{}
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var state textColumn
		var n int
		err := rows.Scan(&state, &n)
		counts[sessions.State(state)] = n
		return err
	}, "SELECT state, COUNT(*) FROM agent_session_usage WHERE day >= $1 GROUP BY state", since.UTC().Format(time.DateOnly))
	return counts, err
}

const usageSums = `COUNT(*), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), CAST(SUM(cache_read_tokens) AS BIGINT),
	CAST(SUM(cache_write_tokens) AS BIGINT), CAST(SUM(cost_nano_usd) AS BIGINT), cost_source`

func scanUsage(rows *sql.Rows, g *sessions.UsageGroup, word *textColumn) error {
	var tier, cost int64
	err := rows.Scan(word, &tier, &g.Sessions, &g.InputTokens, &g.OutputTokens, &g.CacheReadTokens, &g.CacheWriteTokens,
		&cost, (*textColumn)(&g.CostSource))
	g.Tier, g.CostUSD = gitprovider.Tier(tier), float64(cost)/nano
	return err
}

// UsageByDay sums what sessions used that began on or after the day, in UTC, of a time: by that day and by tier, the
// newest day and the lowest tier first. Sessions that run are among them, as far as they are.
func (s *AgentSessions) UsageByDay(ctx context.Context, since time.Time) ([]sessions.UsageGroup, error) {
	parts, err := selectOf(ctx, s.db, func(rows *sql.Rows, g *sessions.UsageGroup) error {
		return scanUsage(rows, g, (*textColumn)(&g.Day))
	}, "SELECT day, tier, "+usageSums+` FROM agent_session_usage WHERE day >= $1
		GROUP BY day, tier, cost_source ORDER BY day DESC, tier`, since.UTC().Format(time.DateOnly))
	var out []sessions.UsageGroup
	for _, p := range parts {
		if last := len(out) - 1; last >= 0 && out[last].Day == p.Day && out[last].Tier == p.Tier {
			out[last].Sessions += p.Sessions
			out[last].Usage = out[last].Add(p.Usage)
			continue
		}
		out = append(out, p)
	}
	return out, err
}

// UsageOfEnded sums what all sessions used that have ended, by state, tier and source of the cost. Its numbers never
// become smaller.
func (s *AgentSessions) UsageOfEnded(ctx context.Context) ([]sessions.UsageGroup, error) {
	return selectOf(ctx, s.db, func(rows *sql.Rows, g *sessions.UsageGroup) error {
		return scanUsage(rows, g, (*textColumn)(&g.State))
	}, "SELECT state, tier, "+usageSums+` FROM agent_session_usage WHERE state <> 'running'
		GROUP BY state, tier, cost_source ORDER BY state, tier, cost_source`)
}
