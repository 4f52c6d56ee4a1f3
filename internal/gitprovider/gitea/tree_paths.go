package gitea

import (
	"context"
	"slices"
	"sync"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const (
	// sharedBy is from how many pull requests on a merge base, whose files are not known, the trees are compared here.
	sharedBy = 4
	// maxComparedTree is up to how many entries a tree may have, folders included: an answer of some 70 KB.
	maxComparedTree = 250
)

// fileTree is what a commit holds: mode and object by path, without the folders.
type fileTree map[string]string

// sharedBases reads the trees of the merge bases that many of the pull requests have in common. Two trees differ in exactly
// the paths that a pull request changes, old names of renames included, and reading one is half the work for the server of
// listing the files of a pull request, which takes several processes of git. Where a tree cannot be had, or is large, the
// files are asked for.
func (p *Provider) sharedBases(ctx context.Context, repo gitprovider.RepoRef, prs []*gitea.PullRequest) map[string]fileTree {
	count := map[string]int{}
	for _, pr := range prs {
		if _, known := p.remembered(ctx, repo, int(pr.Index), version(pr)); !known && version(pr) != "" {
			count[pr.MergeBase]++
		}
	}
	var mu sync.Mutex
	out := map[string]fileTree{}
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for base, n := range count {
		if n < sharedBy {
			continue
		}
		group.Go(func() error {
			if tree, ok := p.wholeTree(ctx, repo, base, maxComparedTree); ok {
				mu.Lock()
				defer mu.Unlock()
				out[base] = tree
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return out
}

// wholeTree reads all that a commit holds; false if it has more entries than one page or than atMost, or cannot be read.
func (p *Provider) wholeTree(ctx context.Context, repo gitprovider.RepoRef, commit string, atMost int) (fileTree, bool) {
	if !isObjectID(commit) {
		return nil, false
	}
	from, err := p.treePage(ctx, repo, commit, true, 1)
	if err != nil || from.SHA != commit || from.Truncated || len(from.Entries) > atMost || len(from.Entries) != from.TotalCount {
		return nil, false
	}
	tree := fileTree{}
	tree.add(from.Entries)
	return tree, true
}

// maxComparedPages bounds the pages of a tree that are read for pagedTree.
const maxComparedPages = 100

// pagedTree reads all that a commit holds, whatever its size up to maxComparedPages pages of treePage entries; upstream_error beyond.
func (p *Provider) pagedTree(ctx context.Context, repo gitprovider.RepoRef, commit string) (fileTree, error) {
	tree, read := fileTree{}, 0
	for number := 1; number <= maxComparedPages; number++ {
		from, err := p.treePage(ctx, repo, commit, true, number)
		switch {
		case err != nil:
			return nil, p.judge(err, repo, "the commit "+commit)
		case from.SHA != commit || len(from.Entries) == 0 && from.TotalCount > read:
			return nil, fault.New(fault.UpstreamError, "%s gave something else for the files of the commit %s of %s", p.base.Host, commit, repo)
		}
		tree.add(from.Entries)
		if read += len(from.Entries); read >= from.TotalCount {
			return tree, nil
		}
	}
	return nil, fault.New(fault.UpstreamError, "the commit %s of %s has more than %d files and folders, which are not compared",
		commit, repo, maxComparedPages*treePage)
}

func (t fileTree) add(entries []gitea.GitEntry) {
	for _, e := range entries {
		if entryOf(e).Kind != gitprovider.KindDir {
			t[e.Path] = e.Mode + " " + e.SHA
		}
	}
}

// pathsAgainst is pathsOf for a pull request whose merge base holds base; nil if that is not known.
func (p *Provider) pathsAgainst(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest, base fileTree) (
	[]string, error) {
	if base == nil {
		return p.pathsOf(ctx, repo, pr)
	}
	if paths, known := p.remembered(ctx, repo, int(pr.Index), version(pr)); known {
		return paths, nil
	}
	head, ok := p.wholeTree(ctx, repo, pr.Head.Sha, treePage)
	if !ok {
		return p.pathsOf(ctx, repo, pr)
	}
	paths := base.changedIn(head)
	p.rememberPaths(ctx, repo, int(pr.Index), version(pr), paths)
	return paths, nil
}

// changedIn gives the paths in which the trees differ, sorted.
func (t fileTree) changedIn(other fileTree) []string {
	var paths []string
	for path, was := range t {
		if other[path] != was {
			paths = append(paths, path)
		}
	}
	for path := range other {
		if _, was := t[path]; !was {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
