package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/session"
)

// This file keeps the sessions of agents.

// Sizes of a page.
const (
	defaultSessions = 50
	maxSessions     = 200
	maxEvents       = 500
)

// BeginSession implements session.Records.
func (s *Store) BeginSession(ctx context.Context, r session.Record) error {
	process, err := s.enter(ctx)
	if err != nil {
		return s.fail(ctx, err)
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		record, err := json.Marshal(r)
		if err != nil {
			return err
		}
		const insert = `INSERT INTO agent_sessions (id, state, process, record) VALUES ($1, $2, $3, $4)`
		_, err = tx.ExecContext(ctx, insert, text(r.ID), text(r.State), text(process), string(record))
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Internal, "a session with the id %q is recorded already", r.ID)
		}
		return err
	})
}

// AppendEvents implements session.Records.
func (s *Store) AppendEvents(ctx context.Context, id string, events []session.Event) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		for _, e := range events {
			const insert = `INSERT INTO agent_session_events (session, seq, time_us, kind, tool, body) VALUES ($1, $2, $3, $4, $5, $6)`
			_, err := tx.ExecContext(ctx, insert, text(id), e.Seq, micros(e.Time), text(e.Kind), text(e.Tool), text(e.Text))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SaveSession implements session.Records.
func (s *Store) SaveSession(ctx context.Context, r session.Record) error {
	return s.write(ctx, func(tx *sql.Tx) error { return saveSession(ctx, tx, r) })
}

func saveSession(ctx context.Context, tx *sql.Tx, r session.Record) error {
	record, err := json.Marshal(r)
	if err != nil {
		return err
	}
	const update = `UPDATE agent_sessions SET state = $1, record = $2 WHERE id = $3`
	done, err := tx.ExecContext(ctx, update, text(r.State), string(record), text(r.ID))
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, noSession(r.ID))
	}
	return nil
}

func noSession(id string) error {
	return fault.New(fault.NotFound, "there is no session %q", bound(id, maxWord))
}

// Session implements session.Records.
func (s *Store) Session(ctx context.Context, id string) (session.Record, error) {
	found, err := s.sessions(ctx, "WHERE id = $1", text(bound(id, maxWord)))
	if err == nil && len(found) == 0 {
		err = noSession(id)
	}
	if err != nil {
		return session.Record{}, err
	}
	return found[0], nil
}

// Sessions implements session.Records.
func (s *Store) Sessions(ctx context.Context, q session.Query) ([]session.Record, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultSessions
	}
	limit = min(limit, maxSessions)
	conditions, args := []string{"1 = 1"}, []any{}
	where := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Before != "" {
		where("id < $%d", text(bound(q.Before, maxWord)))
	}
	if q.State != "" {
		where("state = $%d", text(bound(string(q.State), maxWord)))
	}
	// Tier and trigger stand in the record only. No text in it can hold these patterns: its quotes are escaped.
	if q.Tier != 0 {
		where("record LIKE $%d", fmt.Sprintf(`%%"tier":%d,%%`, q.Tier))
	}
	if q.Trigger != "" {
		where("record LIKE $%d ESCAPE '!'", `%"trigger":"`+likeLiteral(bound(string(q.Trigger), maxWord))+`"%`)
	}
	args = append(args, limit)
	return s.sessions(ctx, fmt.Sprintf("WHERE %s ORDER BY id DESC LIMIT $%d", strings.Join(conditions, " AND "), len(args)), args...)
}

func (s *Store) sessions(ctx context.Context, clauses string, args ...any) (out []session.Record, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		r, err := scanSession(rows)
		out = append(out, r)
		return err
	}, "SELECT record FROM agent_sessions "+clauses, args...)
	return out, err
}

func scanSession(rows *sql.Rows) (r session.Record, err error) {
	var record string
	if err := rows.Scan(&record); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(record), &r); err != nil {
		return r, fault.Wrap(err, fault.Internal, "a recorded session is damaged; restore a backup")
	}
	return r, nil
}

// SessionEvents implements session.Records.
func (s *Store) SessionEvents(ctx context.Context, id string, after int) (out []session.Event, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var e session.Event
		err := rows.Scan(&e.Seq, at(&e.Time), (*text)(&e.Kind), (*text)(&e.Tool), (*text)(&e.Text))
		out = append(out, e)
		return err
	}, `SELECT seq, time_us, kind, tool, body FROM agent_session_events WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
		text(bound(id, maxWord)), after, maxEvents)
	return out, err
}

// SessionCounts implements session.Records.
func (s *Store) SessionCounts(ctx context.Context, id string) (counts session.Counts, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var outcome text
		var n int
		if err := rows.Scan(&outcome, &n); err != nil {
			return err
		}
		switch record.Outcome(outcome) {
		case record.OutcomeOpened:
			counts.Opened = n
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
	}, "SELECT outcome, COUNT(*) FROM attempts WHERE session = $1 AND session <> '' GROUP BY outcome", text(bound(id, maxWord)))
	return counts, err
}

// CloseInterrupted implements session.Records.
func (s *Store) CloseInterrupted(ctx context.Context) (closed []string, err error) {
	running := map[string][]session.Record{} // by process
	err = s.each(ctx, func(rows *sql.Rows) error {
		var process text
		var record string
		if err := rows.Scan(&process, &record); err != nil {
			return err
		}
		var r session.Record
		if err := json.Unmarshal([]byte(record), &r); err != nil {
			return fault.Wrap(err, fault.Internal, "a recorded session is damaged; restore a backup")
		}
		running[string(process)] = append(running[string(process)], r)
		return nil
	}, "SELECT process, record FROM agent_sessions WHERE state = 'running' ORDER BY id")
	if err != nil || len(running) == 0 {
		return nil, err
	}
	var names []string
	for name := range running {
		names = append(names, name)
	}
	ended, err := s.gone(ctx, names)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	for name, records := range running {
		if !ended[name] {
			continue
		}
		for _, r := range records {
			r.State, r.EndedAt = session.StateInterrupted, s.opts.Now().UTC()
			r.Reason = "the process that ran it was killed, or the machine stopped"
			if r.Counts, err = s.SessionCounts(ctx, r.ID); err != nil {
				return closed, err
			}
			if err := s.SaveSession(ctx, r); err != nil {
				return closed, err
			}
			closed = append(closed, r.ID)
		}
	}
	slices.Sort(closed)
	return closed, nil
}

// sessionsOf returns the sessions in which attempts were made, by their numbers in the audit.
func sessionsOf(ctx context.Context, tx *sql.Tx, rows []AuditRow) (out map[int64]string, err error) {
	numbers := make([]any, len(rows))
	for i, r := range rows {
		numbers[i] = r.Seq
	}
	found, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT seq, session FROM attempts WHERE session <> '' AND seq IN (%s)",
		placeholders(1, len(numbers))), numbers...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	out = map[int64]string{}
	for found.Next() {
		var seq int64
		var id text
		if err := found.Scan(&seq, &id); err != nil {
			return nil, err
		}
		out[seq] = string(id)
	}
	return out, found.Err()
}
