package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/prflow"
)

var _ prflow.History = (*Store)(nil)

// maxByDigest bounds what ByDigest returns; see prflow.History.
const maxByDigest = 20

// ByDigest implements prflow.History.
func (s *Store) ByDigest(ctx context.Context, digest string) (out []prflow.Proposal, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		out, err = selectProposals(ctx, tx, "WHERE digest = $1 AND state IN ('opened', 'reserved', 'committed', 'unsettled') "+
			"ORDER BY created_us DESC, id DESC LIMIT $2", text(digest), maxByDigest)
		return err
	})
	return out, err
}

// Position implements prflow.History: the number of the last row of the audit.
func (s *Store) Position(ctx context.Context) (prflow.Position, error) {
	seq, _, err := s.Head(ctx)
	return prflow.Position(seq), err
}

// CreatedSince implements prflow.History.
func (s *Store) CreatedSince(
	ctx context.Context, provider, owner, repo string, since time.Time,
) (count int, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		const query = `SELECT COUNT(*) FROM proposals WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_us >= $4`
		return tx.QueryRowContext(ctx, query, text(provider), text(owner), text(repo), micros(since)).Scan(&count)
	})
	return count, err
}

// ByDigest implements prflow.History.
func (l *Lazy) ByDigest(ctx context.Context, digest string) ([]prflow.Proposal, error) {
	return get(ctx, l, func(s *Store) ([]prflow.Proposal, error) { return s.ByDigest(ctx, digest) })
}

// Position implements prflow.History.
func (l *Lazy) Position(ctx context.Context) (prflow.Position, error) {
	return get(ctx, l, func(s *Store) (prflow.Position, error) { return s.Position(ctx) })
}

// CreatedSince implements prflow.History.
func (l *Lazy) CreatedSince(ctx context.Context, provider, owner, repo string, since time.Time) (int, error) {
	return get(ctx, l, func(s *Store) (int, error) { return s.CreatedSince(ctx, provider, owner, repo, since) })
}
