package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// Reserve implements prflow.Ledger. The state recorded is StateReserved, whatever p says.
func (s *Store) Reserve(
	ctx context.Context, p record.Proposal, claim record.Claim,
) (taken *record.Proposal, err error) {
	defer s.holdings.arrive()()
	process, err := s.enter(ctx)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	p.State = record.StateReserved
	var holders []keptProposal
	err = s.write(ctx, func(tx *sql.Tx) error {
		holder, err := findHolder(ctx, tx, p, claim.Seen)
		if err != nil {
			return err
		}
		if holder != "" {
			holders, err = selectProposals(ctx, tx, "WHERE id = $1", text(holder))
			return err
		}
		if err := admit(ctx, tx, p, claim); err != nil {
			return err
		}
		if err := insertProposal(ctx, tx, keptProposal{p, process}, s.opts.Now()); err != nil {
			return err
		}
		return insertReservations(ctx, tx, p)
	})
	if err != nil {
		s.holdings.doubt(err)
		return nil, err
	}
	if len(holders) == 0 {
		s.holdings.add(p.ID, process)
		return nil, nil
	}
	others, err := s.handOut(ctx, holders)
	if err != nil {
		return nil, err
	}
	return &others[0], nil
}

// findHolder returns the id of the proposal that keeps p from taking its paths, or "".
func findHolder(ctx context.Context, tx *sql.Tx, p record.Proposal, seen record.Position) (id string, err error) {
	if len(p.Files) == 0 {
		return "", nil
	}
	reserved := []any{text(p.Provider), text(p.Owner + "/" + p.Repo), text(p.ID)}
	opened := []any{text(p.Provider), text(p.Owner), text(p.Repo), int64(seen)}
	for _, f := range p.Files {
		reserved = append(reserved, foldedPath(f.Path))
		opened = append(opened, foldedPath(f.Path))
	}
	err = tx.QueryRowContext(ctx, `SELECT proposal_id FROM reservations
		WHERE provider = $1 AND repo = $2 AND proposal_id <> $3 AND path IN (`+placeholders(4, len(reserved))+`)
		ORDER BY path LIMIT 1`, reserved...).Scan((*text)(&id))
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	err = tx.QueryRowContext(ctx, `SELECT p.id FROM proposals p
		WHERE p.provider = $1 AND p.owner = $2 AND p.repo = $3 AND p.opened_seq > $4 AND EXISTS (
			SELECT 1 FROM proposal_files f WHERE f.proposal_id = p.id AND LOWER(f.path) IN (`+placeholders(5, len(opened))+`))
		ORDER BY p.opened_seq DESC LIMIT 1`, opened...).Scan((*text)(&id))
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// foldedPath is how reservations tell paths apart. Canonical paths are ASCII, as far as SQL's LOWER goes.
func foldedPath(path string) text { return text(strings.ToLower(path)) }

func insertReservations(ctx context.Context, tx *sql.Tx, p record.Proposal) error {
	for _, f := range p.Files {
		const insert = `INSERT INTO reservations (provider, repo, path, proposal_id) VALUES ($1, $2, $3, $4)`
		_, err := tx.ExecContext(ctx, insert, text(p.Provider), text(p.Owner+"/"+p.Repo), foldedPath(f.Path), text(p.ID))
		if err != nil {
			return err
		}
	}
	return nil
}

// Advance implements prflow.Ledger. to.State is StateReserved, StateCommitted or StateUnsettled. A proposal that is in
// none of them any more is fault.Conflict: another process has settled it.
func (s *Store) Advance(ctx context.Context, id string, to record.Progress) error {
	if err := checkStep(to.State, record.StateReserved, record.StateCommitted, record.StateUnsettled); err != nil {
		return err
	}
	err := s.write(ctx, func(tx *sql.Tx) error { return s.progress(ctx, tx, id, to) })
	if to.State == record.StateUnsettled || fault.CodeOf(err) == fault.Conflict {
		s.holdings.end(id, err)
	}
	return err
}

// Finish implements prflow.Ledger. to.State is StateOpened or StateFailed. A proposal that is settled already is
// fault.Conflict, as with Advance; attempt and notices are then not recorded, so that the caller records what it made of
// it.
func (s *Store) Finish(
	ctx context.Context, id string, to record.Progress, a record.Attempt, notices ...record.Notice,
) error {
	if err := checkStep(to.State, record.StateOpened, record.StateFailed); err != nil {
		return err
	}
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := s.progress(ctx, tx, id, to); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM reservations WHERE proposal_id = $1`, text(id)); err != nil {
			return err
		}
		if err := insertNotices(ctx, tx, notices, s.opts.Now()); err != nil {
			return err
		}
		seq, err := s.appendAudit(ctx, tx, a)
		if err != nil || to.State != record.StateOpened {
			return err
		}
		const opened = `UPDATE proposals SET opened_us = $1, opened_seq = $2 WHERE id = $3`
		if _, err = tx.ExecContext(ctx, opened, micros(s.opts.Now()), seq, text(id)); err != nil {
			return err
		}
		return recordPull(ctx, tx, id, s.opts.Now())
	})
	if err == nil {
		s.holdings.finished(id)
	} else {
		s.holdings.end(id, err)
	}
	return err
}

// Record implements prflow.Ledger. The state recorded of dryRun is StateDryRun, whatever it says.
func (s *Store) Record(
	ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice,
) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if dryRun != nil {
			p := *dryRun
			p.State = record.StateDryRun
			if err := insertProposal(ctx, tx, keptProposal{Proposal: p}, s.opts.Now()); err != nil {
				return err
			}
		}
		if err := insertNotices(ctx, tx, notices, s.opts.Now()); err != nil {
			return err
		}
		_, err := s.appendAudit(ctx, tx, a)
		return err
	})
}

func checkStep(state record.ProposalState, accepted ...record.ProposalState) error {
	if slices.Contains(accepted, state) {
		return nil
	}
	return fault.New(fault.Internal, "a proposal cannot go to the state %q here; one of %q can", state, accepted)
}

// Adopt implements prflow.Ledger.
func (s *Store) Adopt(ctx context.Context, left record.Proposal) (ok bool, err error) {
	defer s.holdings.arrive()()
	process, err := s.enter(ctx)
	if err != nil {
		return false, s.fail(ctx, err)
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE proposals SET process = $1,
				state = CASE WHEN state <> 'unsettled' THEN state WHEN commit_id <> '' THEN 'committed' ELSE 'reserved' END
			WHERE id = $2 AND process = $3 AND state = $4 AND state IN ('reserved', 'committed', 'unsettled')`,
			text(process), text(left.ID), text(left.Holder), text(left.State))
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		ok = changed == 1
		return err
	})
	if err != nil || !ok {
		s.holdings.doubt(err)
		return false, err
	}
	s.holdings.add(left.ID, process)
	return true, nil
}

// progress updates a live proposal that this store holds, as far as it knows. Empty fields leave what is recorded.
func (s *Store) progress(ctx context.Context, tx *sql.Tx, id string, to record.Progress) error {
	holder, undone := text(s.holdings.name(id)), int64(-1) // leaves what is recorded
	switch {
	case to.Undone:
		undone = micros(s.opts.Now())
	case to.State == record.StateOpened:
		undone = 0
	}
	result, err := tx.ExecContext(ctx, `UPDATE proposals SET state = $1,
			branch = COALESCE(NULLIF($2, ''), branch), commit_id = COALESCE(NULLIF($3, ''), commit_id),
			pr_number = COALESCE(NULLIF(CAST($4 AS BIGINT), 0), pr_number), pr_url = COALESCE(NULLIF($5, ''), pr_url),
			undone_us = CASE WHEN CAST($8 AS BIGINT) >= 0 THEN CAST($8 AS BIGINT) ELSE undone_us END
		WHERE id = $6 AND state IN ('reserved', 'committed', 'unsettled') AND (process = $7 OR $7 = '')`,
		text(to.State), text(to.Branch), text(to.Commit), to.PRNumber, text(to.PRURL), text(id), holder, undone)
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err == nil && changed == 0 {
		return fault.New(fault.Conflict, "the reservation of proposal %q is gone: another process has settled it; "+
			"look at the open pull requests, and repeat the request if the change is still wanted", id)
	}
	return err
}
