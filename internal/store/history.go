package store

import (
	"context"
	"database/sql"

	"github.com/claudeops/claudeops/internal/record"
)

// Bounds of what these methods return; see prflow.History.
const (
	maxByDigest   = 20
	maxUnfinished = 1000
)

// ByDigest implements prflow.History.
func (s *Store) ByDigest(ctx context.Context, digest string) ([]record.Proposal, error) {
	return s.proposals(ctx, "WHERE digest = $1 AND state IN ('opened', 'reserved', 'committed', 'unsettled') "+
		"ORDER BY created_us DESC, id DESC LIMIT $2", text(digest), maxByDigest)
}

// Unfinished implements prflow.History.
func (s *Store) Unfinished(ctx context.Context) ([]record.Proposal, error) {
	return s.proposals(ctx, "WHERE id IN (SELECT proposal_id FROM reservations) ORDER BY created_us, id LIMIT $1",
		maxUnfinished)
}

// Position implements prflow.History: the number of the last row of the audit.
func (s *Store) Position(ctx context.Context) (record.Position, error) {
	seq, _, err := s.Head(ctx)
	return record.Position(seq), err
}

// PathsOf implements prflow.History.
func (s *Store) PathsOf(ctx context.Context, provider, owner, repo string, number int) (paths []string, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT path FROM proposal_files WHERE proposal_id = (
				SELECT id FROM proposals WHERE provider = $1 AND owner = $2 AND repo = $3 AND pr_number = $4
					AND state = 'opened' ORDER BY opened_seq DESC LIMIT 1)
			ORDER BY path`, text(provider), text(owner), text(repo), number)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var path text
			if err := rows.Scan(&path); err != nil {
				return err
			}
			paths = append(paths, string(path))
		}
		return rows.Err()
	})
	return paths, err
}

// ByDigest implements prflow.History.
func (l *Lazy) ByDigest(ctx context.Context, digest string) ([]record.Proposal, error) {
	return get(ctx, l, func(s *Store) ([]record.Proposal, error) { return s.ByDigest(ctx, digest) })
}

// Position implements prflow.History.
func (l *Lazy) Position(ctx context.Context) (record.Position, error) {
	return get(ctx, l, func(s *Store) (record.Position, error) { return s.Position(ctx) })
}

// Unfinished implements prflow.History.
func (l *Lazy) Unfinished(ctx context.Context) ([]record.Proposal, error) {
	return get(ctx, l, func(s *Store) ([]record.Proposal, error) { return s.Unfinished(ctx) })
}

// PathsOf implements prflow.History.
func (l *Lazy) PathsOf(ctx context.Context, provider, owner, repo string, number int) ([]string, error) {
	return get(ctx, l, func(s *Store) ([]string, error) { return s.PathsOf(ctx, provider, owner, repo, number) })
}
