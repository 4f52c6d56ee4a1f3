package gitea

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

const (
	// treePage is the number of tree entries per request: the server's own limit unless it is configured otherwise
	// (DEFAULT_GIT_TREES_PER_PAGE).
	treePage = 1000
	// maxTreePages is up to how many pages a whole tree is read; above, the folders of interest are read one by one.
	maxTreePages = 4
)

// trees reads what commits hold: folders, and contents of files.
type trees struct {
	api      *api
	branches branches
	oneByOne *atomic.Bool // the server has no route for many files at once
}

// baseTree holds the files of a commit of the base branch.
type baseTree struct {
	commit string
	tree   gitprovider.Tree
	sizes  map[string]int64 // bytes of the files in tree
}

// branch reads the root folder and the folders above the paths. name "" is the branch that HEAD names.
//
// One request is enough for up to 1000 entries in the whole repository: it is recursive, and its sha is the commit's.
// The branch is named in full, since a tag of the same name would come first. The server treats a name as long as an
// object id as one, so its commit is read first, which costs a request.
func (t trees) branch(ctx context.Context, repo gitprovider.RepoRef, name string, paths []gitprovider.Path) (baseTree,
	error) {
	ref := "HEAD"
	if name != "" {
		ref = refsPrefix + name
	}
	if gitprovider.LooksLikeID(name) {
		tips, err := t.branches.heads(ctx, repo, name)
		if err != nil {
			return baseTree{}, err
		}
		if tip := tips[name]; tip != "" { // else the server says that there is none
			ref = tip
		}
	}
	first, err := t.readTreePage(ctx, repo, ref, true, 1)
	if lacksRoute(err) && name != "" {
		// Something before the server undid the escaping of the slashes. Branches are found with plain ones.
		if ref, err = t.branches.commit(ctx, repo, name); err == nil {
			first, err = t.readTreePage(ctx, repo, ref, true, 1)
		}
	}
	if err != nil {
		return baseTree{}, err
	}
	return t.readTree(ctx, repo, first, paths)
}

// commit is branch for a commit.
func (t trees) commit(ctx context.Context, repo gitprovider.RepoRef, id string, paths []gitprovider.Path) (baseTree,
	error) {
	first, err := t.readTreePage(ctx, repo, id, true, 1)
	if err != nil {
		return baseTree{}, err
	}
	return t.readTree(ctx, repo, first, paths)
}

// readTree takes what is wanted from the first page, and reads further ones if they are needed.
func (t trees) readTree(ctx context.Context, repo gitprovider.RepoRef, first gitea.GitTreeResponse,
	paths []gitprovider.Path) (
	baseTree, error) {
	if !isObjectID(first.SHA) {
		return baseTree{}, fault.New(fault.UpstreamError, "%s does not say which commit the base of %s is at",
			t.api.base.Host, repo)
	}
	out := baseTree{commit: first.SHA, tree: gitprovider.Tree{}, sizes: map[string]int64{}}
	folders := foldersOf(paths)
	var err error
	switch {
	case !first.Truncated:
		out.addEntries("", first.Entries, folders)
	case len(first.Entries) > 0 && first.TotalCount <= maxTreePages*len(first.Entries):
		err = t.furtherPages(ctx, repo, &out, first, folders)
	default:
		err = t.walk(ctx, repo, &out, folders)
	}
	return out, err
}

// foldersOf returns the set of the folders above the paths, the root "" included.
func foldersOf(paths []gitprovider.Path) map[string]bool {
	folders := map[string]bool{"": true}
	for _, path := range paths {
		for _, dir := range path.Ancestors() {
			folders[dir] = true
		}
	}
	return folders
}

// addEntries takes over the entries, relative to dir, whose folder is wanted.
func (b *baseTree) addEntries(dir string, entries []gitea.GitEntry, folders map[string]bool) {
	for _, e := range entries {
		path := e.Path
		if dir != "" {
			path = dir + "/" + path
		}
		if folders[parentOf(path)] {
			b.tree[path] = entryOf(e)
			b.sizes[path] = e.Size
		}
	}
}

// parentOf returns the folder of a path; "" for the root.
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

// readTreePage reads one page of a tree. The SDK asks for sizes of pages in another way than the server reads.
func (t trees) readTreePage(ctx context.Context, repo gitprovider.RepoRef, ref string, recursive bool, number int) (
	gitea.GitTreeResponse, error) {
	query := url.Values{"per_page": {strconv.Itoa(treePage)}, "page": {strconv.Itoa(number)}}
	if recursive {
		query.Set("recursive", "true")
	}
	var out gitea.GitTreeResponse
	_, err := t.api.get(ctx, t.api.repoURL(repo, "git", "trees", ref), query, &out)
	return out, err
}

// furtherPages reads them side by side, at the commit that the first one told of.
func (t trees) furtherPages(ctx context.Context, repo gitprovider.RepoRef, into *baseTree, first gitea.GitTreeResponse,
	folders map[string]bool) error {
	pages := make([][]gitea.GitEntry, (first.TotalCount+len(first.Entries)-1)/len(first.Entries))
	pages[0] = first.Entries
	err := forge.Each(ctx, pages[1:], func(ctx context.Context, i int, _ []gitea.GitEntry) error {
		next, err := t.readTreePage(ctx, repo, into.commit, true, i+2)
		pages[i+1] = next.Entries
		return err
	})
	for _, entries := range pages {
		into.addEntries("", entries, folders)
	}
	return err
}

// walk reads the wanted folders level by level, those of one level side by side.
func (t trees) walk(ctx context.Context, repo gitprovider.RepoRef, into *baseTree, folders map[string]bool) error {
	type folder struct{ path, id string }
	for level := []folder{{"", into.commit}}; len(level) > 0; {
		lists := make([][]gitea.GitEntry, len(level))
		err := forge.Each(ctx, level, func(ctx context.Context, i int, f folder) (err error) {
			lists[i], err = t.readFolder(ctx, repo, f.id)
			return err
		})
		if err != nil {
			return err
		}
		var below []folder
		for i, at := range level {
			into.addEntries(at.path, lists[i], folders)
			for _, e := range lists[i] {
				path := strings.TrimPrefix(at.path+"/"+e.Path, "/")
				if folders[path] && entryOf(e).Kind == gitprovider.KindDir {
					below = append(below, folder{path, e.SHA})
				}
			}
		}
		level = below
	}
	return nil
}

// readFolder reads every entry of one folder.
func (t trees) readFolder(ctx context.Context, repo gitprovider.RepoRef, id string) ([]gitea.GitEntry, error) {
	read := pageReader[gitea.GitEntry](func(ctx context.Context, number int) (page[gitea.GitEntry], error) {
		next, err := t.readTreePage(ctx, repo, id, false, number)
		return page[gitea.GitEntry]{items: next.Entries, total: next.TotalCount}, err
	})
	entries, _, err := read.all(ctx)
	return entries, err
}

// listTree reads every plain file below a folder, page by page as far as it lists at all.
func (t trees) listTree(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile, bool,
	error) {
	id, prefix := at.BaseCommit, ""
	if folder != "" {
		id, prefix = at.Tree[folder].ID, folder+"/"
	}
	var files []gitprovider.ListedFile
	for number, seen := 1, 0; ; number++ {
		next, err := t.readTreePage(ctx, at.Repo, id, true, number)
		if err != nil {
			return nil, false, err
		}
		for _, e := range next.Entries {
			if entryOf(e).Kind == gitprovider.KindFile {
				files = append(files, gitprovider.ListedFile{Path: prefix + e.Path, ID: e.SHA, Size: e.Size})
			}
		}
		seen += len(next.Entries)
		if len(next.Entries) == 0 || !next.Truncated || len(files) > gitprovider.MaxListedFiles {
			sorted, complete := gitprovider.SortListed(files)
			return sorted, complete && seen >= next.TotalCount, nil
		}
	}
}

// isNoCommit reports whether a tree could not be read because its reference does not exist: 400 from Gitea 1.26, 404
// and 409 (empty repository) from others.
func isNoCommit(err error) bool {
	return isMissing(err) || statusIs(err, http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity)
}

// isObjectID reports whether s is a full object id, SHA-1 or SHA-256.
func isObjectID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// contentsBatch is the number of files per request: fewer than the 30 (DEFAULT_PAGING_NUM) after which the server
// silently stops, and few enough for an address of moderate length.
const contentsBatch = 20

// contents reads the bytes of the paths that are regular files of at most MaxContentRead bytes. What the server's
// file-contents (Gitea 1.24 and later) does not give is read blob by blob. Bytes count only if they have the object id
// that the tree has.
func (t trees) contents(ctx context.Context, repo gitprovider.RepoRef, base baseTree, paths []gitprovider.Path) (
	map[gitprovider.Path][]byte, error) {
	var wanted []gitprovider.Path
	for _, path := range paths {
		entry, exists := base.tree[path.String()]
		if exists && entry.Kind == gitprovider.KindFile && base.sizes[path.String()] <= gitprovider.MaxContentRead {
			wanted = append(wanted, path)
		}
	}
	got := map[gitprovider.Path][]byte{}
	var mu sync.Mutex
	keep := func(path gitprovider.Path, encoded string) bool {
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || gitprovider.BlobID(content, base.commit) != base.tree[path.String()].ID {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		got[path] = content
		return true
	}
	if len(wanted) > 1 && !t.oneByOne.Load() {
		switch err := t.batches(ctx, repo, base.commit, wanted, keep); {
		case lacksRoute(err):
			t.oneByOne.Store(true) // it costs a request to learn that
		case err != nil && !isMissing(err):
			return nil, err
		}
	}
	wanted = slices.DeleteFunc(wanted, func(path gitprovider.Path) bool { return got[path] != nil })
	return got, t.blobs(ctx, repo, base, wanted, keep)
}

// batches asks by GET, which a token that may only read is allowed, for all files of a batch.
func (t trees) batches(ctx context.Context, repo gitprovider.RepoRef, commit string, paths []gitprovider.Path,
	keep func(gitprovider.Path, string) bool) error {
	chunks := slices.Collect(slices.Chunk(paths, contentsBatch))
	return forge.Each(ctx, chunks, func(ctx context.Context, _ int, batch []gitprovider.Path) error {
		names := make([]string, 0, len(batch))
		byName := map[string]gitprovider.Path{}
		for _, path := range batch {
			names = append(names, path.String())
			byName[path.String()] = path
		}
		files, err := callSDK(ctx, t.api, func(c *gitea.Client) ([]*gitea.ContentsResponse, *gitea.Response, error) {
			return c.GetRepoFileContents(repo.Owner, repo.Name, commit, gitea.GetFilesOptions{Files: names})
		})
		for _, f := range withoutNulls(files) {
			if path, asked := byName[f.Path]; asked && f.Content != nil {
				keep(path, *f.Content)
			}
		}
		return err
	})
}

func (t trees) blobs(ctx context.Context, repo gitprovider.RepoRef, base baseTree, paths []gitprovider.Path,
	keep func(gitprovider.Path, string) bool) error {
	return forge.Each(ctx, paths, func(ctx context.Context, _ int, path gitprovider.Path) error {
		blob, err := callSDK(ctx, t.api, func(c *gitea.Client) (*gitea.GitBlobResponse, *gitea.Response, error) {
			return c.GetBlob(repo.Owner, repo.Name, base.tree[path.String()].ID)
		})
		if err == nil && !keep(path, blob.Content) {
			err = fault.New(fault.UpstreamError, "%s gave other bytes for %s than its tree says", t.api.base.Host, path)
		}
		return err
	})
}

// blob reads one blob by its id.
func (t trees) blob(ctx context.Context, repo gitprovider.RepoRef, id string) ([]byte, error) {
	if !isObjectID(id) {
		return nil, fault.New(fault.NotFound, "%.100q is not an object id", id)
	}
	blob, err := callSDK(ctx, t.api, func(c *gitea.Client) (*gitea.GitBlobResponse, *gitea.Response, error) {
		return c.GetBlob(repo.Owner, repo.Name, id)
	})
	switch {
	case statusIs(err, http.StatusBadRequest): // its answer for an id that it does not have
		return nil, fault.New(fault.NotFound, "the repository %s has no blob %.12s", repo, id)
	case err != nil:
		return nil, err
	case blob.Size > gitprovider.MaxContentRead:
		return nil, gitprovider.BlobTooLarge(id)
	}
	content, err := base64.StdEncoding.DecodeString(blob.Content)
	for _, kind := range []string{"commit", "tree", "tag"} { // some versions give other objects, too
		if err == nil && gitprovider.ObjectID(kind, content, id) == id {
			return nil, fault.New(fault.NotFound, "the object %.12s of the repository %s is not a blob", id, repo)
		}
	}
	if err != nil || gitprovider.BlobID(content, id) != id {
		return nil, fault.New(fault.UpstreamError, "%s gave other bytes than those of the blob %.12s", t.api.base.Host, id)
	}
	return content, nil
}
