package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// noteEnd counts a session of the schedule that has ended or was skipped, and puts what people are told of the end of a
// session into the outbox. Of the schedule they are told when it ends otherwise than the session before.
func (d *database) noteEnd(ctx context.Context, tx *sql.Tx, r sessions.Record) error {
	now, again := d.now(), false
	if r.Trigger == sessions.TriggerSchedule {
		before, err := scheduled(ctx, tx)
		if err != nil {
			return err
		}
		again = before.Last == r.State && before.Cause == r.Cause
		// A clock that was set back changes nothing of which one was the last.
		at := max(micros(now), micros(before.LastAt)+1)
		const count = `INSERT INTO scheduled_sessions (state, cause, count, last_us) VALUES ($1, $2, 1, $3)
			ON CONFLICT (state, cause) DO UPDATE SET count = scheduled_sessions.count + 1, last_us = excluded.last_us`
		if _, err := tx.ExecContext(ctx, count, textColumn(r.State), textColumn(r.Cause), at); err != nil {
			return err
		}
	}
	if again || d.opts.SessionNotices == nil {
		return nil
	}
	return insertNotices(ctx, tx, d.opts.SessionNotices(r), now)
}

// ScheduledSessions says how the sessions of the schedule ended.
func (s *AgentSessions) ScheduledSessions(ctx context.Context) (out sessions.Scheduled, err error) {
	err = s.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = scheduled(ctx, tx)
		return err
	})
	return out, err
}

func scheduled(ctx context.Context, tx *sql.Tx) (sessions.Scheduled, error) {
	out := sessions.Scheduled{Ended: map[sessions.State]int64{}, Skipped: map[sessions.Cause]int64{}}
	err := queryRows(ctx, tx, func(rows *sql.Rows) error {
		var state sessions.State
		var cause sessions.Cause
		var n int64
		var last time.Time
		if err := rows.Scan((*textColumn)(&state), (*textColumn)(&cause), &n, timeColumn(&last)); err != nil {
			return err
		}
		if state == sessions.StateSkipped {
			out.Skipped[cause] += n
		} else {
			out.Ended[state] += n
		}
		if state == sessions.StateSucceeded {
			out.LastGood = last
		}
		out.Last, out.Cause, out.LastAt = state, cause, last // the newest comes last
		return nil
	}, "SELECT state, cause, count, last_us FROM scheduled_sessions ORDER BY last_us")
	return out, err
}
