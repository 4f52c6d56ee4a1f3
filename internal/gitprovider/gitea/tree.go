package gitea

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const (
	// treePage is how many entries of a tree are asked for at once: the server's own limit unless it is configured
	// otherwise (DEFAULT_GIT_TREES_PER_PAGE).
	treePage = 1000
	// maxTreePages is up to how many pages a whole tree is read; above, the folders of interest are read one by one.
	maxTreePages = 4
)

// baseTree is what a commit of the base branch holds.
type baseTree struct {
	commit string
	tree   gitprovider.Tree
	sizes  map[string]int64 // bytes of the files in tree
}

// readTree reads the root folder and the folders above the paths. branch "" is the branch that HEAD names.
//
// One request is enough for up to 1000 entries in the whole repository: it is recursive, and its sha is the commit's. The
// branch is named in full, since a tag of the same name would come first.
func (p *Provider) readTree(ctx context.Context, repo gitprovider.RepoRef, branch string, paths []gitprovider.Path) (
	baseTree, error) {
	ref := "HEAD"
	if branch != "" {
		ref = "refs/heads/" + branch
	}
	first, err := p.treePage(ctx, repo, ref, true, 1)
	if lacksRoute(err) && branch != "" {
		// Something before the server undid the escaping of the slashes. Branches are found with plain ones.
		if ref, err = p.branchCommit(ctx, repo, branch); err == nil {
			first, err = p.treePage(ctx, repo, ref, true, 1)
		}
	}
	if err != nil {
		return baseTree{}, err
	}
	return p.completeTree(ctx, repo, first, paths)
}

// readTreeAt is readTree for a commit.
func (p *Provider) readTreeAt(ctx context.Context, repo gitprovider.RepoRef, commit string, paths []gitprovider.Path) (
	baseTree, error) {
	first, err := p.treePage(ctx, repo, commit, true, 1)
	if err != nil {
		return baseTree{}, err
	}
	return p.completeTree(ctx, repo, first, paths)
}

// completeTree takes what is wanted from the first page, and reads further ones if they are needed.
func (p *Provider) completeTree(ctx context.Context, repo gitprovider.RepoRef, first gitea.GitTreeResponse,
	paths []gitprovider.Path) (baseTree, error) {
	if !isObjectID(first.SHA) {
		return baseTree{}, fault.New(fault.UpstreamError, "%s does not say which commit the base of %s is at", p.base.Host, repo)
	}
	t := baseTree{commit: first.SHA, tree: gitprovider.Tree{}, sizes: map[string]int64{}}
	folders := foldersOf(paths)
	switch {
	case !first.Truncated:
		t.add("", first.Entries, folders)
	case len(first.Entries) > 0 && first.TotalCount <= maxTreePages*len(first.Entries):
		if err := p.restOfTree(ctx, repo, &t, first, folders); err != nil {
			return baseTree{}, err
		}
	default:
		if err := p.walkTree(ctx, repo, &t, folders); err != nil {
			return baseTree{}, err
		}
	}
	return t, nil
}

// foldersOf is the set of the folders above the paths, the root "" included.
func foldersOf(paths []gitprovider.Path) map[string]bool {
	folders := map[string]bool{"": true}
	for _, path := range paths {
		for _, dir := range path.Ancestors() {
			folders[dir] = true
		}
	}
	return folders
}

// add takes over the entries, relative to dir, whose folder is wanted.
func (t *baseTree) add(dir string, entries []gitea.GitEntry, folders map[string]bool) {
	for _, e := range entries {
		path := e.Path
		if dir != "" {
			path = dir + "/" + path
		}
		if folders[parentOf(path)] {
			t.tree[path] = entryOf(e)
			t.sizes[path] = e.Size
		}
	}
}

// parentOf is the folder of a path; "" for the root.
func parentOf(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

// entryOf reads the mode as git writes it; see git-fast-import(1) for the list of modes.
func entryOf(e gitea.GitEntry) gitprovider.Entry {
	entry := gitprovider.Entry{Kind: gitprovider.KindFile, ID: e.SHA}
	switch e.Mode {
	case "040000", "40000":
		entry.Kind = gitprovider.KindDir
	case "120000":
		entry.Kind = gitprovider.KindSymlink
	case "160000":
		entry.Kind = gitprovider.KindSubmodule
	case "100755":
		entry.Executable = true
	}
	return entry
}

func (p *Provider) treePage(ctx context.Context, repo gitprovider.RepoRef, ref string, recursive bool, number int) (
	gitea.GitTreeResponse, error) {
	query := url.Values{"per_page": {strconv.Itoa(treePage)}, "page": {strconv.Itoa(number)}}
	if recursive {
		query.Set("recursive", "true")
	}
	var out gitea.GitTreeResponse
	_, err := p.get(ctx, p.repoURL(repo, "git", "trees", ref), query, &out)
	return out, err
}

// restOfTree reads the further pages side by side, at the commit that the first one told of.
func (p *Provider) restOfTree(ctx context.Context, repo gitprovider.RepoRef, t *baseTree, first gitea.GitTreeResponse,
	folders map[string]bool) error {
	pages := make([][]gitea.GitEntry, (first.TotalCount+len(first.Entries)-1)/len(first.Entries))
	pages[0] = first.Entries
	group, ctx := errgroup.WithContext(ctx)
	for i := 1; i < len(pages); i++ {
		group.Go(func() error {
			next, err := p.treePage(ctx, repo, t.commit, true, i+1)
			pages[i] = next.Entries
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, entries := range pages {
		t.add("", entries, folders)
	}
	return nil
}

// walkTree reads the wanted folders level by level, those of one level side by side.
func (p *Provider) walkTree(ctx context.Context, repo gitprovider.RepoRef, t *baseTree, folders map[string]bool) error {
	level := map[string]string{"": t.commit} // id by folder
	for len(level) > 0 {
		lists := map[string]*[]gitea.GitEntry{}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(sideBySide)
		for dir, id := range level {
			list := new([]gitea.GitEntry)
			lists[dir] = list
			group.Go(func() (err error) {
				*list, err = p.folder(ctx, repo, id)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		level = map[string]string{}
		for dir, list := range lists {
			t.add(dir, *list, folders)
			for _, e := range *list {
				path := strings.TrimPrefix(dir+"/"+e.Path, "/")
				if folders[path] && entryOf(e).Kind == gitprovider.KindDir {
					level[path] = e.SHA
				}
			}
		}
	}
	return nil
}

// folder reads every entry of one folder.
func (p *Provider) folder(ctx context.Context, repo gitprovider.RepoRef, id string) ([]gitea.GitEntry, error) {
	entries, _, err := readAll(ctx, func(ctx context.Context, number int) (page[gitea.GitEntry], error) {
		next, err := p.treePage(ctx, repo, id, false, number)
		return page[gitea.GitEntry]{items: next.Entries, total: next.TotalCount}, err
	})
	return entries, err
}

// branchCommit asks for a branch by its name, which is found with plain slashes.
func (p *Provider) branchCommit(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	b, err := p.branch(ctx, repo, branch)
	if err != nil {
		return "", err
	}
	if b.Commit == nil || !isObjectID(b.Commit.ID) {
		return "", fault.New(fault.UpstreamError, "%s does not say which commit the branch %s of %s is at", p.base.Host, branch, repo)
	}
	return b.Commit.ID, nil
}

func (p *Provider) branch(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitea.Branch, error) {
	b, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.Branch, *gitea.Response, error) {
		return c.GetRepoBranch(repo.Owner, repo.Name, branch)
	})
	return b, err
}

// isNoCommit reports whether a tree could not be read because its reference does not exist: 400 from Gitea 1.26, 404 and
// 409 (empty repository) from others.
func isNoCommit(err error) bool {
	return isMissing(err) || statusIs(err, http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity)
}
