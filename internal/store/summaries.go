package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

// This file answers what an overview asks.

// Bounds of what these methods return.
const (
	maxRepositories = 200
	maxWaiting      = 20
)

// RefusalsByGate counts for each gate the attempts that it denied at or after since, the most frequent first.
func (s *Store) RefusalsByGate(ctx context.Context, since time.Time) (out []record.GateCount, err error) {
	// An expression instead of the column keeps SQLite from going through all rows in the order of the primary key.
	const query = `SELECT gate || '' AS name, COUNT(*) FROM attempt_gates WHERE refused_us >= $1
		GROUP BY name ORDER BY COUNT(*) DESC, name`
	err = s.each(ctx, func(rows *sql.Rows) error {
		var gate text
		var count int
		err := rows.Scan(&gate, &count)
		out = append(out, record.GateCount{Gate: record.Gate(gate), Count: count})
		return err
	}, query, micros(since))
	return out, err
}

// ProposalCounts counts the recorded proposals by state.
func (s *Store) ProposalCounts(ctx context.Context) (map[record.ProposalState]int, error) {
	out := map[record.ProposalState]int{}
	err := s.each(ctx, func(rows *sql.Rows) error {
		var state text
		var count int
		err := rows.Scan(&state, &count)
		out[record.ProposalState(state)] = count
		return err
	}, "SELECT state, COUNT(*) FROM proposals GROUP BY state")
	return out, err
}

// Repositories lists the repositories for which a proposal has passed the gates, by name, at most 200.
func (s *Store) Repositories(ctx context.Context) (out []record.RepoName, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var r record.RepoName
		err := rows.Scan((*text)(&r.Provider), (*text)(&r.Owner), (*text)(&r.Name))
		out = append(out, r)
		return err
	}, "SELECT DISTINCT provider, owner, repo FROM proposals ORDER BY provider, owner, repo LIMIT $1", maxRepositories)
	return out, err
}

// WaitingDryRuns returns the dry runs made at or after since whose change no proposal has taken up, newest first, at
// most 20. Of several with the same change it returns each.
func (s *Store) WaitingDryRuns(ctx context.Context, since time.Time) ([]record.Proposal, error) {
	return s.proposals(ctx, `WHERE state = 'dry_run' AND pruned_us IS NULL AND created_us >= $1 AND NOT EXISTS (
			SELECT 1 FROM proposals taken WHERE taken.digest = proposals.digest
				AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened'))
		ORDER BY created_us DESC, id DESC LIMIT $2`, micros(since), maxWaiting)
}

// each calls scan for each row of a query.
func (s *Store) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return s.read(ctx, func(tx *sql.Tx) (err error) {
		rows, err := tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// RefusalsByGate is Store.RefusalsByGate.
func (l *Lazy) RefusalsByGate(ctx context.Context, since time.Time) ([]record.GateCount, error) {
	return get(ctx, l, func(s *Store) ([]record.GateCount, error) { return s.RefusalsByGate(ctx, since) })
}

// ProposalCounts is Store.ProposalCounts.
func (l *Lazy) ProposalCounts(ctx context.Context) (map[record.ProposalState]int, error) {
	return get(ctx, l, func(s *Store) (map[record.ProposalState]int, error) { return s.ProposalCounts(ctx) })
}

// Repositories is Store.Repositories.
func (l *Lazy) Repositories(ctx context.Context) ([]record.RepoName, error) {
	return get(ctx, l, func(s *Store) ([]record.RepoName, error) { return s.Repositories(ctx) })
}

// WaitingDryRuns is Store.WaitingDryRuns.
func (l *Lazy) WaitingDryRuns(ctx context.Context, since time.Time) ([]record.Proposal, error) {
	return get(ctx, l, func(s *Store) ([]record.Proposal, error) { return s.WaitingDryRuns(ctx, since) })
}
