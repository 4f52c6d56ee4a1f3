package gitea

import (
	"context"
	"sync"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// maxOwnCommits bounds how many commits are remembered; each is taken out again when its pull request is opened, a moment
// later.
const maxOwnCommits = 1024

// ownCommits remembers what the commits change that this process has made and not opened a pull request for, so that the
// files of our own pull requests are known without asking.
type ownCommits struct {
	mu    sync.Mutex
	paths map[string][]string // by repository, parent and commit
}

func newOwnCommits() *ownCommits { return &ownCommits{paths: map[string][]string{}} }

func ownKey(repo gitprovider.RepoRef, version string) string { return repoKey(repo) + "@" + version }

func (c *ownCommits) add(req gitprovider.CommitRequest, commit string) {
	paths := make([]string, 0, req.Changes.Len())
	for _, path := range req.Changes.Paths() { // sorted
		paths = append(paths, path.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.paths) >= maxOwnCommits {
		clear(c.paths)
	}
	c.paths[ownKey(req.Snapshot.Repo, req.Snapshot.BaseCommit+".."+commit)] = paths
}

// take gives what a commit changes against its parent; false if this process has not made it.
func (c *ownCommits) take(repo gitprovider.RepoRef, version string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	paths, known := c.paths[ownKey(repo, version)]
	delete(c.paths, ownKey(repo, version))
	return paths, known
}

// rememberOwn keeps what a pull request changes that was just opened for a commit of this process's. Its merge base is the
// commit's parent then, so that the commit is all that there is to it.
func (p *Provider) rememberOwn(ctx context.Context, repo gitprovider.RepoRef, made *gitea.PullRequest) {
	if paths, known := p.own.take(repo, version(made)); known {
		p.rememberPaths(ctx, repo, int(made.Index), version(made), paths)
	}
}
