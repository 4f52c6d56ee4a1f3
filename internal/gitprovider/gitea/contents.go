package gitea

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

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
		files, err := call(ctx, t.api, func(c *gitea.Client) ([]*gitea.ContentsResponse, *gitea.Response, error) {
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
		blob, err := call(ctx, t.api, func(c *gitea.Client) (*gitea.GitBlobResponse, *gitea.Response, error) {
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
	blob, err := call(ctx, t.api, func(c *gitea.Client) (*gitea.GitBlobResponse, *gitea.Response, error) {
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
	if err != nil || gitprovider.BlobID(content, id) != id {
		return nil, fault.New(fault.UpstreamError, "%s gave other bytes than those of the blob %.12s", t.api.base.Host, id)
	}
	return content, nil
}
