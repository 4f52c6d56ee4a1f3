package store

import (
	"context"
	"database/sql"
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
func (h *History) RefusalsByGate(ctx context.Context, since time.Time) ([]record.GateCount, error) {
	// An expression instead of the column keeps SQLite from going through all rows in the order of the primary key.
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.GateCount) error {
		return rows.Scan((*text)(&out.Gate), &out.Count)
	}, `SELECT gate || '' AS name, COUNT(*) FROM attempt_gates WHERE refused_us >= $1
		GROUP BY name ORDER BY COUNT(*) DESC, name`, micros(since))
}

// ProposalCounts counts the recorded proposals by state.
func (h *History) ProposalCounts(ctx context.Context) (map[record.ProposalState]int, error) {
	out := map[record.ProposalState]int{}
	err := h.db.query(ctx, func(rows *sql.Rows) error {
		var state text
		var count int
		err := rows.Scan(&state, &count)
		out[record.ProposalState(state)] = count
		return err
	}, "SELECT state, COUNT(*) FROM proposals GROUP BY state")
	return out, err
}

// Repositories lists the repositories for which a proposal has passed the gates, by name, at most 200.
func (h *History) Repositories(ctx context.Context) ([]record.RepoName, error) {
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.RepoName) error {
		return rows.Scan((*text)(&out.Provider), (*text)(&out.Owner), (*text)(&out.Name))
	}, "SELECT DISTINCT provider, owner, repo FROM proposals ORDER BY provider, owner, repo LIMIT $1", maxRepositories)
}

// WaitingDryRuns returns the dry runs made at or after since whose change no proposal has taken up, newest first, at
// most 20. Of several with the same change it returns each.
func (h *History) WaitingDryRuns(ctx context.Context, since time.Time) ([]record.Proposal, error) {
	return h.db.proposals(ctx, `WHERE state = 'dry_run' AND pruned_us IS NULL AND created_us >= $1 AND NOT EXISTS (
			SELECT 1 FROM proposals taken WHERE taken.digest = proposals.digest
				AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened'))
		ORDER BY created_us DESC, id DESC LIMIT $2`, micros(since), maxWaiting)
}
