package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// PullPaths remembers, for one provider, which files its pull requests change, so that a forge is asked once for each
// head commit and not by each process anew. It is a convenience: what cannot be read or written is simply not
// remembered.
type PullPaths struct {
	db       *database
	provider string
}

// PathsAt returns what the pull request changed when its head was the given commit, if that is its latest known head.
func (m *PullPaths) PathsAt(ctx context.Context, repo gitprovider.RepoRef, number int, head string) (paths []string,
	ok bool) {
	var encoded string
	found, err := m.db.first(ctx, []any{(*text)(&encoded)}, `SELECT paths FROM pull_paths
		WHERE provider = $1 AND repo = $2 AND number = $3 AND head = $4`, text(m.provider), repoOf(repo), number, text(head))
	if err != nil || !found || json.Unmarshal([]byte(encoded), &paths) != nil {
		return nil, false
	}
	return paths, true
}

// RememberPaths keeps what the pull request changes at the head commit, in place of what was known before.
func (m *PullPaths) RememberPaths(ctx context.Context, repo gitprovider.RepoRef, number int, head string,
	paths []string) {
	m.RememberManyPaths(ctx, repo, map[int]string{number: head}, map[int][]string{number: paths})
}

// maxNumbers bounds how many pull requests one statement is about.
const maxNumbers = 500

// ManyPathsAt returns what those of the pull requests changed, by number, whose latest known head is the given one.
func (m *PullPaths) ManyPathsAt(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string) map[int][]string {
	out := map[int][]string{}
	err := m.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for numbers := range slices.Chunk(slices.Sorted(maps.Keys(heads)), maxNumbers) {
			if err := m.readMany(ctx, tx, repo, numbers, heads, out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

func (m *PullPaths) readMany(ctx context.Context, tx *sql.Tx, repo gitprovider.RepoRef, numbers []int,
	heads map[int]string,
	out map[int][]string) error {
	args := []any{text(m.provider), repoOf(repo)}
	for _, number := range numbers {
		args = append(args, number)
	}
	return queryRows(ctx, tx, func(rows *sql.Rows) error {
		var number int
		var head, encoded string
		if err := rows.Scan(&number, (*text)(&head), (*text)(&encoded)); err != nil {
			return err
		}
		var paths []string
		if head == heads[number] && json.Unmarshal([]byte(encoded), &paths) == nil {
			out[number] = paths
		}
		return nil
	}, "SELECT number, head, paths FROM pull_paths WHERE provider = $1 AND repo = $2 AND number IN ("+
		placeholders(3, len(args))+")", args...)
}

// RememberManyPaths keeps what pull requests change at their heads, in place of what was known before: all of it or
// nothing.
func (m *PullPaths) RememberManyPaths(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string,
	paths map[int][]string) {
	_ = m.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		// in one order, so that writers do not wait for one another in a circle
		for _, number := range slices.Sorted(maps.Keys(paths)) {
			if err := m.keep(ctx, tx, repo, number, heads[number], paths[number], micros(m.db.now())); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *PullPaths) keep(ctx context.Context, tx *sql.Tx, repo gitprovider.RepoRef, number int, head string,
	paths []string,
	seen int64) error {
	encoded, err := json.Marshal(append([]string{}, paths...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO pull_paths (provider, repo, number, head, paths, seen_us)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (provider, repo, number) DO UPDATE SET head = excluded.head, paths = excluded.paths, seen_us = excluded.seen_us`,
		text(m.provider), repoOf(repo), number, text(head), text(encoded), seen)
	return err
}

func repoOf(repo gitprovider.RepoRef) text { return text(strings.ToLower(repo.String())) }
