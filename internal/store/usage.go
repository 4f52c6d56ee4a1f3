package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

// Usage implements prflow.History.
func (s *Store) Usage(ctx context.Context, provider, owner, repo string, claim record.Claim) (usage record.Usage, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		usage, err = countUsage(ctx, tx, provider, owner, repo, claim)
		return err
	})
	return usage, err
}

// Usage implements prflow.History.
func (l *Lazy) Usage(ctx context.Context, provider, owner, repo string, claim record.Claim) (record.Usage, error) {
	return get(ctx, l, func(s *Store) (record.Usage, error) { return s.Usage(ctx, provider, owner, repo, claim) })
}

// admit asks the claim whether p may be reserved beside what is there.
func admit(ctx context.Context, tx *sql.Tx, p record.Proposal, claim record.Claim) error {
	if claim.Admit == nil {
		return nil
	}
	usage, err := countUsage(ctx, tx, p.Provider, p.Owner, p.Repo, claim)
	if err != nil {
		return err
	}
	return claim.Admit(usage)
}

// countUsage counts the pull requests of a repository, open and made, and what may become one.
func countUsage(
	ctx context.Context, tx *sql.Tx, provider, owner, repo string, claim record.Claim,
) (usage record.Usage, err error) {
	usage.Open = len(claim.Open)
	// What was recorded as opened after the provider was asked may be missing among what it listed, and so may what is pending.
	rows, err := tx.QueryContext(ctx, `SELECT id, state, pr_number, commit_id FROM proposals
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_seq > $4
		UNION SELECT id, state, pr_number, commit_id FROM proposals
		WHERE id IN (SELECT proposal_id FROM reservations WHERE provider = $1 AND repo = $5)`,
		text(provider), text(owner), text(repo), int64(claim.Seen), text(owner+"/"+repo))
	if err != nil {
		return usage, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, state, commit text
		var number int
		if err := rows.Scan(&id, &state, &number, &commit); err != nil {
			return usage, err
		}
		if holdsPaths(record.ProposalState(state)) {
			usage.Pending++
		}
		listed := slices.ContainsFunc(claim.Open, func(pr record.OpenPull) bool {
			return pr.Number == number || pr.Request == string(id) || commit != "" && pr.Head == string(commit)
		})
		if !listed {
			usage.Open++
		}
	}
	if err := rows.Err(); err != nil {
		return usage, err
	}
	usage.Made, err = openedSince(ctx, tx, provider, owner, repo, claim.Since)
	return usage, err
}

// openedSince returns when pull requests of the repository were recorded as opened, oldest first.
func openedSince(
	ctx context.Context, tx *sql.Tx, provider, owner, repo string, since time.Time,
) (times []time.Time, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT opened_us FROM proposals
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_us >= $4 ORDER BY opened_us`,
		text(provider), text(owner), text(repo), micros(since))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var opened time.Time
		if err := rows.Scan(at(&opened)); err != nil {
			return nil, err
		}
		times = append(times, opened)
	}
	return times, rows.Err()
}
