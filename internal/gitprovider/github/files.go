package github

import (
	"context"
	"slices"

	gogithub "github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// filesKey says whose changed files are cached. They follow from head and base; that the base branch has meanwhile taken
// up a part of the head's commits, so that fewer files differ, shows only when the head changes.
type filesKey struct {
	repo       string
	number     int
	head, base string
}

func keyOf(repo gitprovider.RepoRef, n *pullNode) filesKey {
	return filesKey{repoKey(repo), n.Number, n.HeadRefOid, n.BaseRefName}
}

func weightOfPaths(paths []string) int {
	const overhead = 64
	total := overhead
	for _, path := range paths {
		total += len(path) + overhead/4
	}
	return total
}

// simplePaths gives the files that came along with a node. ok is false if they did not, or are not all: of a rename
// GraphQL shows only the new name, and of many files only the first.
func (n *pullNode) simplePaths() (paths []string, ok bool) {
	if n.Files == nil || n.Files.PageInfo.HasNextPage {
		return nil, false
	}
	for _, file := range n.Files.Nodes {
		if file.ChangeType == "RENAMED" || file.ChangeType == "COPIED" {
			return nil, false
		}
		paths = append(paths, file.Path)
	}
	slices.Sort(paths)
	return paths, true
}

// keepPaths caches the files that came along with the nodes.
func (p *Provider) keepPaths(repo gitprovider.RepoRef, nodes []*pullNode) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if paths, ok := n.simplePaths(); ok {
			p.files.put(keyOf(repo, n), paths)
		}
	}
}

// sideBySide is how many requests of one call run at the same time.
const sideBySide = 8

// pullRequests converts nodes, with their files: from the nodes themselves, from the cache, or by asking.
func (p *Provider) pullRequests(ctx context.Context, repo gitprovider.RepoRef, nodes []*pullNode) (
	[]gitprovider.PullRequest, error) {
	p.keepPaths(repo, nodes)
	if err := p.readFiles(ctx, repo, p.unread(repo, nodes)); err != nil {
		return nil, err
	}
	out := make([]gitprovider.PullRequest, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, n := range nodes {
		out[i] = n.pullRequest()
		if paths, cached := p.files.get(keyOf(repo, n)); cached {
			out[i].Paths = slices.Clone(paths)
			continue
		}
		group.Go(func() (err error) {
			out[i].Paths, err = p.listFiles(ctx, repo, n)
			return err
		})
	}
	return out, group.Wait()
}

// unread gives those of the nodes whose files neither came along nor are known from before.
func (p *Provider) unread(repo gitprovider.RepoRef, nodes []*pullNode) []*pullNode {
	var out []*pullNode
	for _, n := range nodes {
		if _, cached := p.files.get(keyOf(repo, n)); !cached && n.Files == nil {
			out = append(out, n)
		}
	}
	return out
}

// filesAtOnce is how many pull requests one query compares: GitHub gives a query 10 seconds.
const filesAtOnce = 50

// readFiles asks for the files of the nodes, fills them in and caches them. What GraphQL does not tell, or not in full,
// REST has to list.
func (p *Provider) readFiles(ctx context.Context, repo gitprovider.RepoRef, nodes []*pullNode) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for chunk := range slices.Chunk(nodes, filesAtOnce) {
		group.Go(func() error { return p.readChunk(ctx, repo, chunk) })
	}
	return group.Wait()
}

const filesDocument = `query($ids: [ID!]!) { nodes(ids: $ids) { ... on PullRequest { ...pull ...changed } } }` +
	pullFragment + changedFragment

func (p *Provider) readChunk(ctx context.Context, repo gitprovider.RepoRef, chunk []*pullNode) error {
	ids := make([]string, len(chunk))
	for i, n := range chunk {
		ids[i] = n.ID
	}
	var data struct{ Nodes []*pullNode }
	op := operation{document: filesDocument, variables: map[string]any{"ids": ids}, need: needPullsRead}
	if err := p.graphql(ctx, op, &data); err != nil {
		return err
	}
	if len(data.Nodes) != len(chunk) {
		return fault.New(fault.UpstreamError, "GitHub showed %d pull requests instead of %d; try again later",
			len(data.Nodes), len(chunk))
	}
	p.keepPaths(repo, data.Nodes)
	for i, n := range data.Nodes {
		if n == nil {
			continue
		}
		// A head that moved since the list was read has other files: they count for the new one alone.
		if chunk[i].Files = n.Files; keyOf(repo, n) != keyOf(repo, chunk[i]) {
			*chunk[i] = *n
		}
	}
	return nil
}

// maxFilePages is where GitHub ends: it lists at most 3000 files (docs.github.com, "List pull requests files").
const maxFilePages = 30

// listFiles reads the changed files by REST, which tells both names of a rename.
func (p *Provider) listFiles(ctx context.Context, repo gitprovider.RepoRef, n *pullNode) ([]string, error) {
	if paths, cached := p.files.get(keyOf(repo, n)); cached {
		return slices.Clone(paths), nil
	}
	var paths []string
	u := p.repoURL(repo, "pulls", decimal(n.Number), "files")
	for number := 1; number <= maxFilePages; number++ {
		var files []*gogithub.CommitFile
		resp, err := p.get(ctx, page(u, number), needPullsRead, &files)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			paths = append(paths, file.GetFilename())
			if file.GetPreviousFilename() != "" && file.GetStatus() == "renamed" {
				paths = append(paths, file.GetPreviousFilename())
			}
		}
		if resp.NextPage == 0 {
			break
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	p.files.put(keyOf(repo, n), paths)
	return slices.Clone(paths), nil
}
