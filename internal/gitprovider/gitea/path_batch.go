package gitea

import (
	"context"
	"slices"
	"sync"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
)

// bulkPathMemory is an optional ability of a driver.PathMemory: it reads and stores the files of many pull requests of
// a repository at once.
type bulkPathMemory interface {
	driver.PathMemory
	// ManyPathsAt returns the files of those pull requests, by number, that were remembered with the given heads.
	ManyPathsAt(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string) map[int][]string
	// RememberManyPaths keeps the files of pull requests and their heads, both by number, as RememberPaths does.
	RememberManyPaths(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string, paths map[int][]string)
}

// pathBatch is the driver.PathMemory of one call about many pull requests: it asks the memory behind it once, before,
// and tells it once, after.
type pathBatch struct {
	heads map[int]string
	known map[int][]string

	mu    sync.Mutex
	at    map[int]string   // heads of found
	found map[int][]string // to be remembered
}

// batched returns what remembers in a batch, and what ends it. With a memory that knows no batches, or for a single
// pull request, it is f itself.
func (f changedFiles) batched(ctx context.Context, repo gitprovider.RepoRef,
	prs []*gitea.PullRequest) (with changedFiles,
	end func()) {
	memory, can := f.memory.(bulkPathMemory)
	if !can || len(prs) < 2 {
		return f, func() {}
	}
	b := &pathBatch{heads: map[int]string{}, at: map[int]string{}, found: map[int][]string{}}
	for _, pr := range prs {
		number, at := int(pr.Index), version(pr)
		if _, seen := f.known.Get(repo, number, at); at != "" && !seen {
			b.heads[number] = at
		}
	}
	if len(b.heads) > 0 {
		b.known = memory.ManyPathsAt(ctx, repo, b.heads)
	}
	f.memory = b
	return f, func() {
		if len(b.found) > 0 {
			memory.RememberManyPaths(ctx, repo, b.at, b.found)
		}
	}
}

// PathsAt implements driver.PathMemory.
func (b *pathBatch) PathsAt(_ context.Context, _ gitprovider.RepoRef, number int, head string) ([]string, bool) {
	paths, ok := b.known[number]
	return slices.Clone(paths), ok && b.heads[number] == head
}

// RememberPaths implements driver.PathMemory.
func (b *pathBatch) RememberPaths(_ context.Context, _ gitprovider.RepoRef, number int, head string, paths []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at[number], b.found[number] = head, paths
}
