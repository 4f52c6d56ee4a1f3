package forge

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// RepoKey returns the same key for every spelling of a repository: forges compare names without regard to letter case.
func RepoKey(repo gitprovider.RepoRef) string { return strings.ToLower(repo.String()) }

// maxPaths bounds, in bytes of paths, what Paths remembers: the files of some thousand pull requests.
const maxPaths = 4 << 20

// Paths remembers which files pull requests change. They follow from the commits that decide it, so an entry is never
// out of date.
type Paths struct {
	known *LRU[pathsKey, []string]
}

// pathsKey has the number 0 for a commit that this process has made and not opened a pull request for.
type pathsKey struct {
	repo    string
	number  int
	version string // names the commits
}

// NewPaths makes an empty memory.
func NewPaths() *Paths {
	return &Paths{NewLRU[pathsKey](maxPaths, func(paths []string) int {
		const overhead = 64
		total := overhead
		for _, path := range paths {
			total += len(path) + overhead/4
		}
		return total
	})}
}

// Get gives the files of a pull request at a version. The slice is the caller's.
func (p *Paths) Get(repo gitprovider.RepoRef, number int, version string) ([]string, bool) {
	paths, known := p.known.Get(pathsKey{RepoKey(repo), number, version})
	return slices.Clone(paths), known
}

// Put keeps the files of a pull request at a version.
func (p *Paths) Put(repo gitprovider.RepoRef, number int, version string, paths []string) {
	p.known.Put(pathsKey{RepoKey(repo), number, version}, slices.Clone(paths))
	if number > 0 {
		p.known.Put(pathsKey{RepoKey(repo), number, latest}, slices.Clone(paths))
	}
}

// latest stands for the version of a pull request that was put last.
const latest = ""

// Latest gives the files of a pull request as they were put last.
func (p *Paths) Latest(repo gitprovider.RepoRef, number int) ([]string, bool) {
	return p.Get(repo, number, latest)
}

// Committed keeps what a commit of ours changes, for the pull request that is opened of it.
func (p *Paths) Committed(req gitprovider.CommitRequest, version string) {
	paths := make([]string, 0, req.Changes.Len())
	for _, path := range req.Changes.Paths() { // sorted
		paths = append(paths, path.String())
	}
	p.Put(req.Snapshot.Repo, 0, version, paths)
}

// Appended keeps what a commit of ours adds to a pull request, whose number is not known yet.
func (p *Paths) Appended(req gitprovider.CommitRequest, commit string) {
	p.Committed(req, "+"+commit)
}

// TakeAppended gives what the commit adds, once.
func (p *Paths) TakeAppended(repo gitprovider.RepoRef, commit string) (paths []string, known bool) {
	return p.known.Take(pathsKey{RepoKey(repo), 0, "+" + commit})
}

// Opened gives the files of a pull request that was just opened of our commit, and keeps them as its files.
func (p *Paths) Opened(repo gitprovider.RepoRef, number int, version string) (paths []string, known bool) {
	paths, known = p.known.Take(pathsKey{RepoKey(repo), 0, version})
	if known {
		p.Put(repo, number, version, paths)
	}
	return slices.Clone(paths), known
}
