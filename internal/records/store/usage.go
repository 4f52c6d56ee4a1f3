package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Usage implements prflow.History.
func (h *History) Usage(ctx context.Context, provider, owner, repo string, claim record.Claim) (usage record.Usage,
	err error) {
	provider = h.db.stored(provider)
	err = h.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		usage, err = h.db.countUsage(ctx, tx, provider, owner, repo, claim)
		return err
	})
	return usage, err
}

// admit asks the claim whether p may be reserved beside what is there.
func (d *database) admit(ctx context.Context, tx *sql.Tx, p record.Proposal, claim record.Claim) error {
	if claim.Admit == nil {
		return nil
	}
	usage, err := d.countUsage(ctx, tx, p.Provider, p.Owner, p.Repo, claim)
	if err != nil {
		return err
	}
	return claim.Admit(usage)
}

// countUsage counts the pull requests of a repository, open and made, and what may become one. What adds to a pull
// request makes none.
func (d *database) countUsage(
	ctx context.Context, tx *sql.Tx, provider, owner, repo string, claim record.Claim,
) (usage record.Usage, err error) {
	usage.Open = len(claim.Open)
	// What was recorded as opened after the provider was asked may be missing among what it listed, and so may what is
	// pending.
	err = queryRows(ctx, tx, func(rows *sql.Rows) error {
		var id, state, commit string
		var number int
		if err := rows.Scan((*text)(&id), (*text)(&state), &number, (*text)(&commit)); err != nil {
			return err
		}
		if holdsPaths(record.ProposalState(state)) {
			usage.Pending++
		}
		listed := slices.ContainsFunc(claim.Open, func(pr record.OpenPull) bool {
			return pr.Number == number || pr.Request == id || commit != "" && pr.Head == commit
		})
		if !listed {
			usage.Open++
		}
		return nil
	}, `SELECT id, state, pr_number, commit_id FROM proposals
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_seq > $4 AND revises = 0
		UNION SELECT id, state, pr_number, commit_id FROM proposals
		WHERE id IN (SELECT proposal_id FROM reservations WHERE provider = $1 AND repo = $5) AND revises = 0`,
		text(provider), text(owner), text(repo), int64(claim.Seen), text(owner+"/"+repo))
	if err != nil {
		return usage, err
	}
	usage.Made, err = selectRows(ctx, tx, func(rows *sql.Rows, opened *time.Time) error { return rows.Scan(at(opened)) },
		`SELECT opened_us FROM proposals
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_us >= $4 AND revises = 0 ORDER BY opened_us`,
		text(provider), text(owner), text(repo), micros(d.now().Add(-claim.Within)))
	return usage, err
}
