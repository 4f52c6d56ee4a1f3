package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ScriptRuns are the runs of scripts. Each run has a lock of its own until it has ended; see locks.
type ScriptRuns struct {
	db   *database
	held *heldLocks
}

// ScriptRuns returns the runs of scripts.
func (s *Store) ScriptRuns() *ScriptRuns { return &ScriptRuns{s.db, s.db.running} }

// keptScriptRun is a run as the table has it.
type keptScriptRun struct {
	record.ScriptRun
	Lock string `json:",omitempty"` // that is held while the run goes on; "" for a run of an older program
}

// BeginScriptRun records a run that is about to start.
func (s *ScriptRuns) BeginScriptRun(ctx context.Context, r record.ScriptRun) error {
	return s.held.acquireAndRecord(ctx, r.ID, func(lock string) (bool, error) {
		kept, err := encodeScriptRun(keptScriptRun{r, lock})
		if err != nil {
			return false, err
		}
		err = s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if err := s.db.checkPaused(ctx, tx, "", ""); err != nil {
				return err
			}
			const insert = `INSERT INTO script_runs (id, script, started_us, ends_us, state, record) VALUES ($1, $2, $3, $4, $5, $6)`
			_, err := tx.ExecContext(ctx, insert, textColumn(r.ID), textColumn(r.Script), micros(r.StartedAt), micros(r.EndsBy),
				textColumn(r.State), kept)
			return err
		})
		return err == nil, err
	})
}

// EndScriptRun records how a run has ended.
func (s *ScriptRuns) EndScriptRun(ctx context.Context, r record.ScriptRun) error {
	kept, err := encodeScriptRun(keptScriptRun{ScriptRun: r})
	if err == nil {
		err = s.db.exec(ctx, `UPDATE script_runs SET state = $1, record = $2 WHERE id = $3`, textColumn(r.State), kept, textColumn(r.ID))
	}
	if err == nil {
		s.held.forget(r.ID)
	}
	return err
}

// encodeScriptRun returns the run without more output than is kept.
func encodeScriptRun(r keptScriptRun) (string, error) {
	r.Ending.Stdout, r.Ending.Stderr = bound(r.Ending.Stdout, record.MaxScriptOutput), bound(r.Ending.Stderr,
		record.MaxScriptOutput)
	out, err := json.Marshal(r)
	return string(out), err
}

// ScriptRun returns a run by its id; not_found if there is none.
func (s *ScriptRuns) ScriptRun(ctx context.Context, id string) (record.ScriptRun, error) {
	found, err := s.runs(ctx, "WHERE id = $1", textColumn(bound(id, maxWord)))
	switch {
	case err != nil:
		return record.ScriptRun{}, err
	case len(found) == 0:
		return record.ScriptRun{}, fault.New(fault.NotFound, "there is no run of a script with the id %q", bound(id, maxWord))
	}
	return found[0], nil
}

// ScriptRuns returns a page of runs, newest first.
func (s *ScriptRuns) ScriptRuns(ctx context.Context, q record.ScriptRunQuery) ([]record.ScriptRun, error) {
	c := conditions{texts: []string{"1 = 1"}}
	c.equals("id < $%d", q.Before)
	c.equals("script = $%d", q.Script)
	limit := c.limitRows(q.Limit, record.DefaultScriptRuns, record.MaxScriptRuns)
	return s.runs(ctx, fmt.Sprintf("WHERE %s ORDER BY id DESC LIMIT $%d", c.where(), limit), c.args...)
}

func (s *ScriptRuns) runs(ctx context.Context, clauses string, args ...any) ([]record.ScriptRun, error) {
	kept, err := selectOf(ctx, s.db, scanScriptRun, "SELECT record FROM script_runs "+clauses, args...)
	out := make([]record.ScriptRun, 0, len(kept))
	for _, r := range kept {
		out = append(out, r.ScriptRun)
	}
	return out, err
}

func scanScriptRun(rows *sql.Rows, r *keptScriptRun) error {
	var kept string
	if err := rows.Scan(&kept); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(kept), r); err != nil {
		return fault.Wrap(err, fault.Internal, "a recorded run of a script is damaged; restore a backup")
	}
	return nil
}

// maxSettled bounds how many runs one call settles.
const maxSettled = 100

// SettleScriptRuns looks at the runs whose process was killed, or that must have ended by now. One that the audit lacks
// gets its row there; row makes it.
func (s *ScriptRuns) SettleScriptRuns(ctx context.Context, row func(record.ScriptRun) record.Attempt) error {
	open, err := s.unsettled(ctx)
	if err != nil || len(open) == 0 { // most often there is nothing to write
		return err
	}
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		open, err := s.unsettled(ctx) // of now: one may have ended, or its process may have come back
		for _, r := range open {
			if err == nil {
				err = s.settleRun(ctx, tx, r, row)
			}
		}
		return err
	})
}

// unsettled returns the runs that no process works on any more. A run that has ended is left to the process that writes
// its row, until its time is over.
func (s *ScriptRuns) unsettled(ctx context.Context) (open []record.ScriptRun, err error) {
	now := s.db.now()
	runs, err := selectOf(ctx, s.db, scanScriptRun,
		"SELECT record FROM script_runs WHERE settled = 0 AND (ends_us < $1 OR state = $2) ORDER BY id LIMIT $3", micros(now),
		textColumn(record.ScriptRunning), maxSettled)
	if err != nil {
		return nil, err
	}
	var locks []string
	for _, r := range runs {
		if r.Lock != "" {
			locks = append(locks, r.Lock)
		}
	}
	ended, err := s.db.endedLocks(ctx, locks)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.EndsBy.Before(now) || r.State == record.ScriptRunning && ended[r.Lock] {
			open = append(open, r.ScriptRun)
		}
	}
	return open, nil
}

func (s *ScriptRuns) settleRun(ctx context.Context, tx *sql.Tx, r record.ScriptRun,
	row func(record.ScriptRun) record.Attempt) error {
	var seq int64
	err := tx.QueryRowContext(ctx, "SELECT seq FROM audit WHERE request_id = $1 LIMIT 1", textColumn(r.ID)).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		if r.State == record.ScriptRunning {
			r.State, r.Ending.ExitCode = record.ScriptInterrupted, -1
		}
		_, err = s.db.appendAudit(ctx, tx, row(r))
	}
	if err != nil {
		return err
	}
	kept, err := encodeScriptRun(keptScriptRun{ScriptRun: r})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE script_runs SET settled = 1, state = $1, record = $2 WHERE id = $3",
		textColumn(r.State), kept, textColumn(r.ID))
	return err
}
