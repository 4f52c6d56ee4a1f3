package store

import (
	"context"
	"database/sql"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Pauses are what people have paused. Every claim that precedes a first write asks for them in its own transaction: a
// claim is either before a pause, and then counts as under way, or it is refused.
type Pauses struct {
	db   *database
	held *heldLocks // of the tools that this process runs
}

// Pauses returns what people have paused.
func (s *Store) Pauses() *Pauses { return &Pauses{s.db, s.db.claimed} }

const pauseColumns = "owner, repo, why, paused_by, since_us, until_us"

// where a pause of everything, or of the repository, lasts at the time $1; everything is "" and "".
const pausedThere = `(until_us = 0 OR until_us > $1) AND (owner = '' OR LOWER(owner) = LOWER($2) AND LOWER(repo) = LOWER($3))`

func scanPause(rows *sql.Rows, p *record.Pause) error {
	var until int64
	err := rows.Scan((*textColumn)(&p.Owner), (*textColumn)(&p.Repo), (*textColumn)(&p.Why), (*textColumn)(&p.By),
		timeColumn(&p.Since), &until)
	if err == nil && until > 0 {
		err = timeColumn(&p.Until).Scan(until)
	}
	return err
}

// Pause begins a pause, which replaces a former one of the same scope, and appends the row to the audit. stopSessions
// also asks the sessions that run to end. It returns the pause with the time at which it began.
func (s *Pauses) Pause(ctx context.Context, p record.Pause, stopSessions bool, row record.Attempt) (record.Pause,
	error) {
	err := s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		now := s.db.now()
		p.Since = now
		if _, err := tx.ExecContext(ctx, `DELETE FROM pauses WHERE until_us > 0 AND until_us <= $1
			OR LOWER(owner) = LOWER($2) AND LOWER(repo) = LOWER($3)`, micros(now), textColumn(p.Owner),
			textColumn(p.Repo)); err != nil {
			return err
		}
		until := int64(0)
		if !p.Until.IsZero() {
			until = micros(p.Until)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO pauses ("+pauseColumns+") VALUES ("+placeholders(1, 6)+")",
			textColumn(p.Owner), textColumn(p.Repo), textColumn(bound(p.Why, record.MaxPauseReason)), textColumn(p.By),
			micros(p.Since), until); err != nil {
			return err
		}
		if stopSessions {
			const stop = "UPDATE agent_sessions SET stop_asked_us = COALESCE(stop_asked_us, $1) WHERE state = 'running'"
			if _, err := tx.ExecContext(ctx, stop, micros(now)); err != nil {
				return err
			}
		}
		_, err := s.db.appendAudit(ctx, tx, row)
		return err
	})
	return p, err
}

// Resume ends the pause of a repository, or with "" and "" all pauses, and appends the row; not_found if there is none.
func (s *Pauses) Resume(ctx context.Context, owner, repo string,
	row func(ended []record.Pause) record.Attempt) (ended []record.Pause, err error) {
	err = s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const meant = "($2 = '' OR LOWER(owner) = LOWER($2) AND LOWER(repo) = LOWER($3))"
		now := micros(s.db.now())
		ended, err = selectRows(ctx, tx, scanPause, "SELECT "+pauseColumns+
			" FROM pauses WHERE (until_us = 0 OR until_us > $1) AND "+meant+" ORDER BY owner, repo",
			now, textColumn(owner), textColumn(repo))
		switch {
		case err != nil:
			return err
		case len(ended) == 0 && owner != "":
			return fault.New(fault.NotFound,
				"%s/%s is not paused by itself; claudeops resume without --repo ends every pause", owner, repo)
		case len(ended) == 0:
			return fault.New(fault.NotFound, "nothing is paused")
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM pauses WHERE until_us > 0 AND until_us <= $1 OR "+meant, now,
			textColumn(owner), textColumn(repo))
		if err != nil {
			return err
		}
		_, err = s.db.appendAudit(ctx, tx, row(ended))
		return err
	})
	return ended, err
}

// Pauses lists those that last, that of everything first.
func (s *Pauses) Pauses(ctx context.Context) ([]record.Pause, error) {
	return selectOf(ctx, s.db, scanPause, "SELECT "+pauseColumns+
		" FROM pauses WHERE until_us = 0 OR until_us > $1 ORDER BY owner, repo", micros(s.db.now()))
}

// Paused returns paused if everything, or the repository, is paused now; "" and "" ask for everything alone.
func (s *Pauses) Paused(ctx context.Context, owner, repo string) error {
	return s.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return s.db.checkPaused(ctx, tx, owner, repo)
	})
}

// checkPaused is Paused within the transaction of a claim.
func (d *database) checkPaused(ctx context.Context, tx *sql.Tx, owner, repo string) error {
	now := d.now()
	found, err := selectRows(ctx, tx, scanPause, "SELECT "+pauseColumns+" FROM pauses WHERE "+pausedThere+
		" ORDER BY owner LIMIT 1", micros(now), textColumn(owner), textColumn(repo))
	if err != nil || len(found) == 0 {
		return err
	}
	return found[0].Fault(now)
}

// Claim notes that a tool is about to write, until release is called; paused if it may not. owner and repo are "" for
// what is about no repository.
func (s *Pauses) Claim(ctx context.Context, owner, repo string) (release func(), err error) {
	id := s.db.opts.NewID()
	err = s.held.acquireAndRecord(ctx, id, func(lock string) (bool, error) {
		err := s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if err := s.db.checkPaused(ctx, tx, owner, repo); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO write_claims (id, owner, repo, process, since_us) VALUES ("+
				placeholders(1, 5)+")", textColumn(id), textColumn(owner), textColumn(repo), textColumn(lock), micros(s.db.now()))
			return err
		})
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return func() {
		// a row that stays is that of a lock which has ended
		_ = s.db.exec(context.WithoutCancel(ctx), "DELETE FROM write_claims WHERE id = $1", textColumn(id))
		s.held.forget(id)
	}, nil
}

// Underway counts what had begun to write within the scope of a pause, and still does. Scripts and sessions count only
// where everything is paused.
func (s *Pauses) Underway(ctx context.Context, p record.Pause) (out record.Underway, err error) {
	type claim struct{ id, lock string }
	var claims []claim
	err = s.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const there = "($1 = '' OR LOWER(owner) = LOWER($1) AND LOWER(repo) = LOWER($2))"
		claims, err = selectRows(ctx, tx, func(rows *sql.Rows, c *claim) error {
			return rows.Scan((*textColumn)(&c.id), (*textColumn)(&c.lock))
		}, `SELECT id, process FROM write_claims WHERE `+there+` UNION ALL
			SELECT id, process FROM proposals WHERE state IN ('reserved', 'committed') AND `+there,
			textColumn(p.Owner), textColumn(p.Repo))
		if err != nil || p.Owner != "" {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM script_runs WHERE state = $1 AND settled = 0 AND ends_us > $2),
			(SELECT COUNT(*) FROM agent_sessions WHERE state = 'running')`, textColumn(record.ScriptRunning),
			micros(s.db.now())).Scan(&out.Scripts, &out.Sessions)
	})
	if err != nil {
		return out, err
	}
	locks := make([]string, len(claims))
	for i, c := range claims {
		locks[i] = c.lock
	}
	ended, err := s.db.endedLocks(ctx, locks)
	var gone []string
	for _, c := range claims {
		if ended[c.lock] {
			gone = append(gone, c.id)
		} else {
			out.Writes++
		}
	}
	for _, id := range gone { // of claims alone: a proposal stays until it is settled
		if err == nil {
			err = s.db.exec(ctx, "DELETE FROM write_claims WHERE id = $1", textColumn(id))
		}
	}
	return out, err
}
