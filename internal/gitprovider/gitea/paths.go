package gitea

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// withPaths converts pull requests and fills in the files that they change, reading those that are not remembered.
func (p *Provider) withPaths(ctx context.Context, repo gitprovider.RepoRef, from []*gitea.PullRequest) (
	[]gitprovider.PullRequest, error) {
	out := make([]gitprovider.PullRequest, len(from))
	p, end := p.batched(ctx, repo, from)
	defer end()
	bases := p.sharedBases(ctx, repo, from)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, pr := range from {
		out[i] = pullRequest(pr, p.now())
		group.Go(func() (err error) {
			out[i].Paths, err = p.pathsAgainst(ctx, repo, pr, bases[pr.MergeBase])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// pathsOf gives the files that a pull request changes. They depend on its head commit and merge base alone, so they are
// read once for each pair.
func (p *Provider) pathsOf(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest) ([]string, error) {
	if paths, ok := p.remembered(ctx, repo, int(pr.Index), version(pr)); ok {
		return paths, nil
	}
	files, _, err := readAll(ctx, p.filePage(repo, pr))
	if err != nil {
		return nil, err
	}
	return p.takePaths(ctx, repo, pr, files), nil
}

// filePage reads one page of the files that a pull request changes.
func (p *Provider) filePage(repo gitprovider.RepoRef, pr *gitea.PullRequest) func(context.Context, int) (
	page[*gitea.ChangedFile], error) {
	return func(ctx context.Context, number int) (page[*gitea.ChangedFile], error) {
		items, header, err := call(ctx, p, func(c *gitea.Client) ([]*gitea.ChangedFile, *gitea.Response, error) {
			return c.ListPullRequestFiles(repo.Owner, repo.Name, pr.Index, gitea.ListPullRequestFilesOptions{
				ListOptions: gitea.ListOptions{Page: number, PageSize: pageSize},
			})
		})
		return page[*gitea.ChangedFile]{items: present(items), total: totalOf(header)}, err
	}
}

// takePaths remembers all the files of a pull request, if they are those of its head, and gives their names.
func (p *Provider) takePaths(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest,
	files []*gitea.ChangedFile) []string {
	paths := namesOf(files)
	if areOf(files, pr.Head) {
		p.rememberPaths(ctx, repo, int(pr.Index), version(pr), paths)
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

func (p *Provider) remembered(ctx context.Context, repo gitprovider.RepoRef, number int, at string) ([]string, bool) {
	if at == "" {
		return nil, false
	}
	if paths, ok := p.seen.get(cacheKey(repo, number, at)); ok {
		return paths, true
	}
	if p.paths == nil {
		return nil, false
	}
	paths, ok := p.paths.PathsAt(ctx, repo, number, at)
	if ok {
		p.seen.put(cacheKey(repo, number, at), paths)
	}
	return paths, ok
}

func (p *Provider) rememberPaths(ctx context.Context, repo gitprovider.RepoRef, number int, at string, paths []string) {
	if at == "" {
		return
	}
	p.seen.put(cacheKey(repo, number, at), paths)
	if p.paths != nil {
		p.paths.RememberPaths(ctx, repo, number, at, slices.Clone(paths))
	}
}

func cacheKey(repo gitprovider.RepoRef, number int, at string) string {
	return repoKey(repo) + "#" + strconv.Itoa(number) + "@" + at
}

// repoKey is the same for every spelling of a repository: Gitea compares names without regard to letter case.
func repoKey(repo gitprovider.RepoRef) string { return strings.ToLower(repo.String()) }

// maxCachedPaths bounds the pull requests that a process remembers; a pull request of ours has a few short paths.
const maxCachedPaths = 4096

// pathCache remembers the files of pull requests. When it is full it forgets everything: simpler than to order entries,
// and at its size so rare that the requests it costs do not matter.
type pathCache struct {
	mu    sync.Mutex
	paths map[string][]string
}

func newPathCache() *pathCache { return &pathCache{paths: map[string][]string{}} }

func (c *pathCache) get(key string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	paths, ok := c.paths[key]
	return slices.Clone(paths), ok
}

func (c *pathCache) put(key string, paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.paths) >= maxCachedPaths {
		clear(c.paths)
	}
	c.paths[key] = slices.Clone(paths)
}
