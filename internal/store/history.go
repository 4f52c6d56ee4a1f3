package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/prflow"
)

var _ prflow.History = (*Store)(nil)

// CreatedSince implements prflow.History.
func (s *Store) CreatedSince(ctx context.Context, provider, owner, repo string, since time.Time) (count int, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		const query = `SELECT COUNT(*) FROM proposals WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_us >= $4`
		return tx.QueryRowContext(ctx, query, text(provider), text(owner), text(repo), micros(since)).Scan(&count)
	})
	return count, err
}

// CreatedSince implements prflow.History.
func (l *Lazy) CreatedSince(ctx context.Context, provider, owner, repo string, since time.Time) (int, error) {
	return get(ctx, l, func(s *Store) (int, error) { return s.CreatedSince(ctx, provider, owner, repo, since) })
}
