package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// PullPaths remembers, for one provider, which files its pull requests change, so that a forge is asked once for each head
// commit and not by each process anew. It is a convenience: what cannot be read or written is simply not remembered.
type PullPaths struct {
	store    *Lazy
	provider string
}

// PullPaths returns the memory of a provider. It opens nothing yet.
func (l *Lazy) PullPaths(provider string) *PullPaths { return &PullPaths{l, provider} }

// PathsAt returns what the pull request changed when its head was the given commit, if that is its latest known head.
func (m *PullPaths) PathsAt(ctx context.Context, repo gitprovider.RepoRef, number int, head string) (paths []string, ok bool) {
	var encoded string
	err := m.store.do(ctx, func(s *Store) error {
		return s.read(ctx, func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, `SELECT paths FROM pull_paths
				WHERE provider = $1 AND repo = $2 AND number = $3 AND head = $4`,
				text(m.provider), repoOf(repo), number, text(head)).Scan((*text)(&encoded))
		})
	})
	if err != nil || json.Unmarshal([]byte(encoded), &paths) != nil {
		return nil, false
	}
	return paths, true
}

// RememberPaths keeps what the pull request changes at the head commit, in place of what was known before.
func (m *PullPaths) RememberPaths(ctx context.Context, repo gitprovider.RepoRef, number int, head string, paths []string) {
	encoded, err := json.Marshal(append([]string{}, paths...))
	if err != nil {
		return
	}
	_ = m.store.do(ctx, func(s *Store) error {
		return s.write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO pull_paths (provider, repo, number, head, paths, seen_us)
				VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (provider, repo, number) DO UPDATE SET head = excluded.head, paths = excluded.paths, seen_us = excluded.seen_us`,
				text(m.provider), repoOf(repo), number, text(head), text(encoded), micros(s.opts.Now()))
			return err
		})
	})
}

func repoOf(repo gitprovider.RepoRef) text { return text(strings.ToLower(repo.String())) }
