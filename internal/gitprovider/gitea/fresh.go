package gitea

import (
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// maxFresh bounds how many branches are remembered; each is taken out again a moment later.
const maxFresh = 1024

// freshBranches remembers the branches that this process has made and not opened a pull request for. The server makes a
// branch for one creator alone, so nobody else can have opened one for it either, short of looking for it.
type freshBranches struct {
	names *forge.Memory[string, bool]
}

func newFreshBranches() *freshBranches {
	return &freshBranches{forge.NewMemory[string, bool](maxFresh, nil)}
}

func freshKey(repo gitprovider.RepoRef, branch string) string {
	return forge.RepoKey(repo) + ":" + branch
}

func (f *freshBranches) add(repo gitprovider.RepoRef, branch string) {
	f.names.Put(freshKey(repo, branch), true)
}

// take reports whether the branch is fresh, to the first who asks.
func (f *freshBranches) take(repo gitprovider.RepoRef, branch string) bool {
	fresh, _ := f.names.Take(freshKey(repo, branch))
	return fresh
}
