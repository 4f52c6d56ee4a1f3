package gitea

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

const (
	// sharedBy is the number of pull requests on a merge base, whose files are not known, from which the trees are
	// compared here.
	sharedBy = 4
	// maxComparedTree is up to how many entries a tree may have, folders included: an answer of some 70 KB.
	maxComparedTree = 250
)

// fileTree maps the paths of a commit to mode and object, without the folders.
type fileTree map[string]string

// sharedBases reads the trees of the merge bases that many of the pull requests have in common. Two trees differ in
// exactly the paths that a pull request changes, old names of renames included, and reading one is half the work for
// the server of listing the files of a pull request, which takes several processes of git. Where a tree cannot be had,
// or is large, the files are asked for.
func (f changedFiles) sharedBases(ctx context.Context, repo gitprovider.RepoRef,
	prs []*gitea.PullRequest) map[string]fileTree {
	count := map[string]int{}
	for _, pr := range prs {
		if _, known := f.remembered(ctx, repo, pr); !known && version(pr) != "" {
			count[pr.MergeBase]++
		}
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n < sharedBy })
	var mu sync.Mutex
	out := map[string]fileTree{}
	// none fails
	_ = forge.Each(ctx, slices.Collect(maps.Keys(count)), func(ctx context.Context, _ int, base string) error {
		if tree, ok := f.trees.onePage(ctx, repo, base, maxComparedTree); ok {
			mu.Lock()
			defer mu.Unlock()
			out[base] = tree
		}
		return nil
	})
	return out
}

// onePage reads all that a commit holds; false if it has more entries than one page or than atMost, or cannot be read.
func (t trees) onePage(ctx context.Context, repo gitprovider.RepoRef, commit string, atMost int) (fileTree, bool) {
	if !isObjectID(commit) {
		return nil, false
	}
	from, err := t.page(ctx, repo, commit, true, 1)
	if err != nil || from.SHA != commit || from.Truncated || len(from.Entries) > atMost ||
		len(from.Entries) != from.TotalCount {
		return nil, false
	}
	tree := fileTree{}
	tree.add(from.Entries)
	return tree, true
}

// maxComparedPages bounds the pages of a tree that are read for a comparison.
const maxComparedPages = 100

// allPages reads all that a commit holds, whatever its size up to maxComparedPages pages; upstream_error beyond.
func (t trees) allPages(ctx context.Context, repo gitprovider.RepoRef, commit string) (fileTree, error) {
	tree, read := fileTree{}, 0
	for number := 1; number <= maxComparedPages; number++ {
		from, err := t.page(ctx, repo, commit, true, number)
		switch {
		case err != nil:
			return nil, err
		case from.SHA != commit || len(from.Entries) == 0 && from.TotalCount > read:
			return nil, t.api.wrongAnswer("the files of the commit "+commit, repo)
		}
		tree.add(from.Entries)
		if read += len(from.Entries); read >= from.TotalCount {
			return tree, nil
		}
	}
	return nil, fault.New(fault.UpstreamError,
		"the commit %s of %s has more than %d files and folders, which are not compared",
		commit, repo, maxComparedPages*treePage)
}

func (t fileTree) add(entries []gitea.GitEntry) {
	for _, e := range entries {
		if entryOf(e).Kind != gitprovider.KindDir {
			t[e.Path] = e.Mode + " " + e.SHA
		}
	}
}

// comparedWith is read for a pull request whose merge base holds base; base is nil if that is not known.
func (f changedFiles) comparedWith(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest,
	base fileTree) ([]string,
	error) {
	if base == nil {
		return f.read(ctx, repo, pr)
	}
	if paths, known := f.remembered(ctx, repo, pr); known {
		return paths, nil
	}
	head, ok := f.trees.onePage(ctx, repo, pr.Head.Sha, treePage)
	if !ok {
		return f.read(ctx, repo, pr)
	}
	paths := base.diff(head)
	f.remember(ctx, repo, pr, paths)
	return paths, nil
}

// diff gives the paths in which the trees differ, sorted.
func (t fileTree) diff(other fileTree) []string {
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

// readCommit reads a commit, and compares its tree with its first parent's: the list of files that Gitea has of a
// commit leaves out files that turn into symbolic links, and the like.
func (t trees) readCommit(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	if !isObjectID(id) {
		return none, forge.NoCommit(repo, id)
	}
	var from struct {
		SHA    string `json:"sha"`
		Author *struct {
			Login string `json:"login"`
		} `json:"author"`
		Commit struct {
			Message string `json:"message"`
			Author  struct {
				Name string `json:"name"`
			} `json:"author"`
			Committer struct {
				Date time.Time `json:"date"`
			} `json:"committer"`
		} `json:"commit"`
		Parents []struct {
			SHA string `json:"sha"`
		} `json:"parents"`
	}
	query := url.Values{"stat": {"false"}, "verification": {"false"}, "files": {"false"}}
	if _, err := t.api.get(ctx, t.api.repoURL(repo, "git", "commits", id), query, &from); err != nil {
		return none, err
	}
	if from.SHA != id {
		return none, t.api.wrongAnswer("the commit "+id, repo)
	}
	info := gitprovider.CommitInfo{ID: from.SHA, Message: from.Commit.Message, Author: from.Commit.Author.Name,
		Time: from.Commit.Committer.Date.UTC()}
	if from.Author != nil && from.Author.Login != "" {
		info.Author = from.Author.Login
	}
	for _, parent := range from.Parents {
		info.Parents = append(info.Parents, parent.SHA)
	}
	var before, after fileTree
	reads := []func() error{forge.Into(&after, func() (fileTree, error) { return t.allPages(ctx, repo, id) })}
	if len(info.Parents) > 0 {
		reads = append(reads, forge.Into(&before, func() (fileTree, error) { return t.allPages(ctx, repo, info.Parents[0]) }))
	}
	if err := forge.Together(reads...); err != nil {
		return none, err
	}
	info.Paths = before.diff(after)
	return info, nil
}
