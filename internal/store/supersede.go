package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

// Supersede implements prflow.Ledger.
func (s *Store) Supersede(ctx context.Context, left, next record.Proposal, a record.Attempt) (ok bool, err error) {
	defer s.holdings.arrive()()
	process, err := s.enter(ctx)
	if err != nil {
		return false, s.fail(ctx, err)
	}
	next.State = record.StateReserved
	err = s.write(ctx, func(tx *sql.Tx) error {
		ok = false // the transaction may be tried again
		result, err := tx.ExecContext(ctx, `UPDATE proposals SET state = 'failed'
			WHERE id = $1 AND process = $2 AND state = $3 AND state IN ('reserved', 'committed', 'unsettled')`,
			text(left.ID), text(left.Holder), text(left.State))
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		if ok = changed == 1; err != nil || !ok {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM reservations WHERE proposal_id = $1`, text(left.ID)); err != nil {
			return err
		}
		if _, err := s.appendAudit(ctx, tx, a); err != nil {
			return err
		}
		if err := insertProposal(ctx, tx, keptProposal{next, process}, s.opts.Now()); err != nil {
			return err
		}
		return insertReservations(ctx, tx, next)
	})
	if err != nil || !ok {
		s.holdings.doubt(err)
		return false, err
	}
	s.holdings.add(next.ID, process)
	return true, nil
}

// Undone implements prflow.History.
func (s *Store) Undone(ctx context.Context, id string) (undone bool, err error) {
	var when int64
	err = s.read(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT undone_us FROM proposals WHERE id = $1", text(id)).Scan(&when)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return when > 0, err
}

// UndoneBranches implements prflow.History.
func (s *Store) UndoneBranches(ctx context.Context, provider, owner, repo string, since time.Time) (out []string, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var branch text
		err := rows.Scan(&branch)
		out = append(out, string(branch))
		return err
	}, "SELECT DISTINCT branch FROM proposals WHERE provider = $1 AND owner = $2 AND repo = $3 AND undone_us > 0 AND undone_us >= $4",
		text(provider), text(owner), text(repo), micros(since))
	return out, err
}

// Supersede implements prflow.Ledger; see Store.Supersede.
func (l *Lazy) Supersede(ctx context.Context, left, next record.Proposal, a record.Attempt) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.Supersede(ctx, left, next, a) })
}

// Undone implements prflow.History.
func (l *Lazy) Undone(ctx context.Context, id string) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.Undone(ctx, id) })
}

// UndoneBranches implements prflow.History.
func (l *Lazy) UndoneBranches(ctx context.Context, provider, owner, repo string, since time.Time) ([]string, error) {
	return get(ctx, l, func(s *Store) ([]string, error) { return s.UndoneBranches(ctx, provider, owner, repo, since) })
}
