package gitea

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"sync"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// contentsBatch is how many files are asked for at once: fewer than the 30 (DEFAULT_PAGING_NUM) after which the server
// stops without a word, and few enough for an address of moderate length.
const contentsBatch = 20

// contents reads the bytes of the paths that are regular files of at most MaxContentRead bytes. What the server's
// file-contents (Gitea 1.24 and later) does not give is read blob by blob. Bytes count only if they have the object id
// that the tree has.
func (p *Provider) contents(ctx context.Context, repo gitprovider.RepoRef, base baseTree, paths []gitprovider.Path) (
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
	keep := func(path gitprovider.Path, content []byte) bool {
		if gitprovider.BlobID(content, base.commit) != base.tree[path.String()].ID {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		got[path] = content
		return true
	}
	if len(wanted) > 1 {
		if err := p.contentsAtOnce(ctx, repo, base.commit, wanted, keep); err != nil && !lacksRoute(err) && !isMissing(err) {
			return nil, err
		}
	}
	wanted = slices.DeleteFunc(wanted, func(path gitprovider.Path) bool { return got[path] != nil })
	return got, p.blobs(ctx, repo, base, wanted, keep)
}

// contentsAtOnce asks by GET, which a token that may only read is allowed, for all files of a batch.
func (p *Provider) contentsAtOnce(ctx context.Context, repo gitprovider.RepoRef, commit string, paths []gitprovider.Path,
	keep func(gitprovider.Path, []byte) bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for batch := range slices.Chunk(paths, contentsBatch) {
		group.Go(func() error {
			names := make([]string, 0, len(batch))
			byName := map[string]gitprovider.Path{}
			for _, path := range batch {
				names = append(names, path.String())
				byName[path.String()] = path
			}
			body, err := json.Marshal(map[string][]string{"files": names})
			if err != nil {
				return fault.Wrap(err, fault.Internal, "a request to Gitea could not be encoded")
			}
			var files []*gitea.ContentsResponse
			query := url.Values{"ref": {commit}, "body": {string(body)}}
			if _, err := p.get(ctx, p.repoURL(repo, "file-contents"), query, &files); err != nil {
				return err
			}
			for _, f := range files {
				if f == nil || f.Content == nil {
					continue
				}
				content, err := base64.StdEncoding.DecodeString(*f.Content)
				if path, asked := byName[f.Path]; asked && err == nil {
					keep(path, content)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (p *Provider) blobs(ctx context.Context, repo gitprovider.RepoRef, base baseTree, paths []gitprovider.Path,
	keep func(gitprovider.Path, []byte) bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for _, path := range paths {
		group.Go(func() error {
			blob, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.GitBlobResponse, *gitea.Response, error) {
				return c.GetBlob(repo.Owner, repo.Name, base.tree[path.String()].ID)
			})
			if err != nil {
				return err
			}
			content, err := base64.StdEncoding.DecodeString(blob.Content)
			if err != nil || !keep(path, content) {
				return fault.Wrap(err, fault.UpstreamError, "%s gave other bytes for %s than its tree says", p.base.Host, path)
			}
			return nil
		})
	}
	return group.Wait()
}
