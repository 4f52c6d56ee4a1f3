package gitea

import (
	"context"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// changedFiles finds out which files pull requests change.
type changedFiles struct {
	api    *api
	trees  trees
	known  *forge.Paths
	memory driver.PathMemory // beyond the process; nil for none
}

// version names the commits that decide what a pull request changes: the merge base and the head.
func version(pr *gitea.PullRequest) string {
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

// read gives the files that a pull request changes. They depend on its head commit and merge base alone, so they are
// read once for each pair.
func (f changedFiles) read(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest) ([]string, error) {
	if paths, ok := f.remembered(ctx, repo, pr); ok {
		return paths, nil
	}
	files, _, err := f.list(repo, pr).all(ctx)
	if err != nil {
		return nil, err
	}
	return f.fromList(ctx, repo, pr, files), nil
}

// list reads the files that a pull request changes.
func (f changedFiles) list(repo gitprovider.RepoRef, pr *gitea.PullRequest) pageReader[*gitea.ChangedFile] {
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
	number, at := int(pr.Index), version(pr)
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
	at := version(pr)
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
	if paths, known := f.known.Opened(repo, int(made.Index), version(made)); known {
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
