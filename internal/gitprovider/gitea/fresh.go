package gitea

import (
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// maxFresh bounds how many branches are remembered; each is taken out again a moment later.
const maxFresh = 1024

// freshBranches remembers the branches that this process has made and not opened a pull request for. The server makes a
// branch for one creator alone, so nobody else can have opened one for it either, short of looking for it.
type freshBranches struct {
	mu    sync.Mutex
	names map[string]bool
}

func newFreshBranches() *freshBranches { return &freshBranches{names: map[string]bool{}} }

func (f *freshBranches) add(repo gitprovider.RepoRef, branch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) >= maxFresh {
		clear(f.names)
	}
	f.names[repoKey(repo)+":"+branch] = true
}

// take reports whether the branch is fresh, to the first who asks.
func (f *freshBranches) take(repo gitprovider.RepoRef, branch string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := repoKey(repo) + ":" + branch
	fresh := f.names[key]
	delete(f.names, key)
	return fresh
}
