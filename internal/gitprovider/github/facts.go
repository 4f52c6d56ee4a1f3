package github

import (
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// facts caches the last known facts about a repository.
type facts struct {
	id        string          // GraphQL node id
	labels    map[string]bool // by labelKey
	seen      time.Time       // when labels was read
	filesRead bool            // the files of our open pull requests have been read
}

// maxRepositories bounds the repositories of which something is remembered.
const maxRepositories = 512

// repositoryFacts remembers the facts of repositories.
type repositoryFacts struct {
	known *forge.LRU[string, facts]
}

func newRepositoryFacts() *repositoryFacts {
	return &repositoryFacts{forge.NewLRU[string, facts](maxRepositories, nil)}
}

func (r *repositoryFacts) of(repo gitprovider.RepoRef) facts {
	known, _ := r.known.Get(forge.RepoKey(repo))
	return known
}

func (r *repositoryFacts) change(repo gitprovider.RepoRef, change func(facts) facts) {
	r.known.Update(forge.RepoKey(repo), change)
}

// noteFilesRead notes that the files of our open pull requests have been read.
func (r *repositoryFacts) noteFilesRead(repo gitprovider.RepoRef) {
	r.change(repo, func(f facts) facts {
		f.filesRead = true
		return f
	})
}
