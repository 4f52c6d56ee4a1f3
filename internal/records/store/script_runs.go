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

// ScriptRuns are the runs of scripts.
type ScriptRuns struct{ db *database }

// ScriptRuns are the runs of scripts.
func (s *Store) ScriptRuns() *ScriptRuns { return &ScriptRuns{s.db} }

// BeginScriptRun records a run that is about to start.
func (s *ScriptRuns) BeginScriptRun(ctx context.Context, r record.ScriptRun) error {
	kept, err := encodeScriptRun(r)
	if err != nil {
		return err
	}
	return s.db.exec(ctx, `INSERT INTO script_runs (id, script, started_us, ends_us, state, record) VALUES ($1, $2, $3, $4, $5, $6)`,
		text(r.ID), text(r.Script), micros(r.StartedAt), micros(r.EndsBy), text(r.State), kept)
}

// EndScriptRun records how a run has ended.
func (s *ScriptRuns) EndScriptRun(ctx context.Context, r record.ScriptRun) error {
	kept, err := encodeScriptRun(r)
	if err != nil {
		return err
	}
	return s.db.exec(ctx, `UPDATE script_runs SET state = $1, record = $2 WHERE id = $3`, text(r.State), kept, text(r.ID))
}

// encodeScriptRun is the run without more output than is kept.
func encodeScriptRun(r record.ScriptRun) (string, error) {
	r.Ending.Stdout, r.Ending.Stderr = bound(r.Ending.Stdout, record.MaxScriptOutput), bound(r.Ending.Stderr, record.MaxScriptOutput)
	out, err := json.Marshal(r)
	return string(out), err
}

// ScriptRun is a run by its id; not_found if there is none.
func (s *ScriptRuns) ScriptRun(ctx context.Context, id string) (record.ScriptRun, error) {
	found, err := s.runs(ctx, "WHERE id = $1", text(bound(id, maxWord)))
	switch {
	case err != nil:
		return record.ScriptRun{}, err
	case len(found) == 0:
		return record.ScriptRun{}, fault.New(fault.NotFound, "there is no run of a script with the id %q", bound(id, maxWord))
	}
	return found[0], nil
}

// ScriptRuns is a page of runs, newest first.
func (s *ScriptRuns) ScriptRuns(ctx context.Context, q record.ScriptRunQuery) ([]record.ScriptRun, error) {
	c := conditions{texts: []string{"1 = 1"}}
	c.equals("id < $%d", q.Before)
	c.equals("script = $%d", q.Script)
	limit := c.page(q.Limit, record.DefaultScriptRuns, record.MaxScriptRuns)
	return s.runs(ctx, fmt.Sprintf("WHERE %s ORDER BY id DESC LIMIT $%d", c.where(), limit), c.args...)
}

func (s *ScriptRuns) runs(ctx context.Context, clauses string, args ...any) ([]record.ScriptRun, error) {
	return selectOf(ctx, s.db, scanScriptRun, "SELECT record FROM script_runs "+clauses, args...)
}

func scanScriptRun(rows *sql.Rows, r *record.ScriptRun) error {
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

// SettleScriptRuns looks at the runs that must have ended by now. One that the audit lacks, because the process that ran it was killed,
// gets its row there; row makes it.
func (s *ScriptRuns) SettleScriptRuns(ctx context.Context, row func(record.ScriptRun) record.Attempt) error {
	now := micros(s.db.opts.Now())
	found := false
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		found = true
		var id text
		return rows.Scan(&id)
	}, "SELECT id FROM script_runs WHERE settled = 0 AND ends_us < $1 LIMIT 1", now)
	if err != nil || !found { // most often there is nothing to write
		return err
	}
	return s.db.write(ctx, func(tx *sql.Tx) error {
		open, err := selectRows(ctx, tx, scanScriptRun, "SELECT record FROM script_runs WHERE settled = 0 AND ends_us < $1 ORDER BY id LIMIT $2", now, maxSettled)
		for _, r := range open {
			if err == nil {
				err = s.settle(ctx, tx, r, row)
			}
		}
		return err
	})
}

func (s *ScriptRuns) settle(ctx context.Context, tx *sql.Tx, r record.ScriptRun, row func(record.ScriptRun) record.Attempt) error {
	var seq int64
	err := tx.QueryRowContext(ctx, "SELECT seq FROM audit WHERE request_id = $1 LIMIT 1", text(r.ID)).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		if r.State == record.ScriptRunning {
			r.State, r.Ending.ExitCode = record.ScriptInterrupted, -1
		}
		_, err = s.db.appendAudit(ctx, tx, row(r))
	}
	if err != nil {
		return err
	}
	kept, err := encodeScriptRun(r)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE script_runs SET settled = 1, state = $1, record = $2 WHERE id = $3", text(r.State), kept, text(r.ID))
	return err
}
