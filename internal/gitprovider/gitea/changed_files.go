package gitea

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// changedFiles finds out which files pull requests change.
type changedFiles struct {
	api    *api
	trees  trees
	known  *forge.Paths
	memory forge.PathMemory // beyond the process; nil for none
}

// changesVersion names the commits that decide what a pull request changes: the merge base and the head.
func changesVersion(pr *gitea.PullRequest) string {
	if pr.Head == nil || pr.Head.Sha == "" || pr.MergeBase == "" {
		return ""
	}
	return versionOf(pr.MergeBase, pr.Head.Sha)
}

func versionOf(base, head string) string { return base + ".." + head }

// readAll gives the files of each of the pull requests, reading those that are not remembered.
func (f changedFiles) readAll(ctx context.Context, repo gitprovider.RepoRef, prs []*gitea.PullRequest) ([][]string,
	error) {
	out := make([][]string, len(prs))
	f, end := f.batched(ctx, repo, prs)
	defer end()
	bases := f.sharedBases(ctx, repo, prs)
	err := forge.Each(ctx, prs, func(ctx context.Context, i int, pr *gitea.PullRequest) (err error) {
		out[i], err = f.comparedWith(ctx, repo, pr, bases[pr.MergeBase])
		return err
	})
	return out, err
}

// readChangedFiles gives the files that a pull request changes. They depend on its head commit and merge base alone, so
// they are read once for each pair.
func (f changedFiles) readChangedFiles(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest) ([]string,
	error) {
	if paths, ok := f.remembered(ctx, repo, pr); ok {
		return paths, nil
	}
	files, _, err := f.listChangedFiles(repo, pr).all(ctx)
	if err != nil {
		return nil, err
	}
	return f.fromList(ctx, repo, pr, files), nil
}

// listChangedFiles reads the files that a pull request changes.
func (f changedFiles) listChangedFiles(repo gitprovider.RepoRef, pr *gitea.PullRequest) pageReader[*gitea.ChangedFile] {
	return pagesOf(f.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.ChangedFile, *gitea.Response, error) {
		return c.ListPullRequestFiles(repo.Owner, repo.Name, pr.Index, gitea.ListPullRequestFilesOptions{ListOptions: o})
	})
}

// fromList remembers all the files of a pull request, if they are those of its head, and gives their names.
func (f changedFiles) fromList(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest,
	files []*gitea.ChangedFile,
) []string {
	paths := namesOf(files)
	if areOf(files, pr.Head) {
		f.remember(ctx, repo, pr, paths)
	}
	return paths
}

// namesOf gives the names, old ones of renames included, sorted.
func namesOf(files []*gitea.ChangedFile) []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Filename)
		if f.PreviousFilename != "" {
			paths = append(paths, f.PreviousFilename)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// areOf reports whether the files are those of the head. The server compares with refs/pull/N/head, which follows the
// branch a moment after a push; the files' addresses tell which commit it was.
func areOf(files []*gitea.ChangedFile, head *gitea.PRBranchInfo) bool {
	return !slices.ContainsFunc(files, func(f *gitea.ChangedFile) bool {
		return strings.Contains(f.ContentsURL, "ref=") && f.Status != "deleted" && !strings.Contains(f.ContentsURL, head.Sha)
	})
}

func (f changedFiles) remembered(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest) ([]string,
	bool) {
	number, at := int(pr.Index), changesVersion(pr)
	if at == "" {
		return nil, false
	}
	paths, ok := f.known.Get(repo, number, at)
	if ok || f.memory == nil {
		return paths, ok
	}
	if paths, ok = f.memory.PathsAt(ctx, repo, number, at); ok {
		f.known.Put(repo, number, at, paths)
	}
	return paths, ok
}

func (f changedFiles) remember(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest, paths []string) {
	at := changesVersion(pr)
	if at == "" {
		return
	}
	f.known.Put(repo, int(pr.Index), at, paths)
	if f.memory != nil {
		f.memory.RememberPaths(ctx, repo, int(pr.Index), at, slices.Clone(paths))
	}
}

// opened keeps what a pull request changes that was just opened for a commit of this process's. Its merge base is the
// commit's parent then, so that the commit is all that there is to it.
func (f changedFiles) opened(ctx context.Context, repo gitprovider.RepoRef, made *gitea.PullRequest) {
	if paths, known := f.known.Opened(repo, int(made.Index), changesVersion(made)); known {
		f.remember(ctx, repo, made, paths)
	}
}

// appended keeps what a pull request changes to which this process has just added the commit head: what was known to be
// changed before, and what the commit changes, if that is as much as the server counts.
func (f changedFiles) appended(ctx context.Context, repo gitprovider.RepoRef, number int, base, head string,
	count int) {
	added, ours := f.known.TakeAppended(repo, head)
	if !ours {
		return
	}
	before, known := f.known.Latest(repo, number)
	if !known {
		return
	}
	paths := slices.Concat(before, added)
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) != count {
		return
	}
	f.remember(ctx, repo, &gitea.PullRequest{Index: int64(number), MergeBase: base, Head: &gitea.PRBranchInfo{Sha: head}},
		paths)
}

// bulkPathMemory is an optional ability of a driver.PathMemory: it reads and stores the files of many pull requests of
// a repository at once.
type bulkPathMemory interface {
	forge.PathMemory
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
		number, at := int(pr.Index), changesVersion(pr)
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
		if _, known := f.remembered(ctx, repo, pr); !known && changesVersion(pr) != "" {
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
	from, err := t.readTreePage(ctx, repo, commit, true, 1)
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
		from, err := t.readTreePage(ctx, repo, commit, true, number)
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
		return f.readChangedFiles(ctx, repo, pr)
	}
	if paths, known := f.remembered(ctx, repo, pr); known {
		return paths, nil
	}
	head, ok := f.trees.onePage(ctx, repo, pr.Head.Sha, treePage)
	if !ok {
		return f.readChangedFiles(ctx, repo, pr)
	}
	paths := base.changedPaths(head)
	f.remember(ctx, repo, pr, paths)
	return paths, nil
}

// changedPaths gives the paths in which the trees differ, sorted.
func (t fileTree) changedPaths(other fileTree) []string {
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
	info.Paths = before.changedPaths(after)
	return info, nil
}
