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
	out := make([]gitprovider.PullRequest, len(nodes))
	var unread, listed []int // indexes: never seen, and to be listed by REST
	for i, n := range nodes {
		out[i] = n.pullRequest()
		paths, cached := p.files.get(keyOf(repo, n))
		switch {
		case cached:
			out[i].Paths = slices.Clone(paths)
		case n.Files != nil:
			listed = append(listed, i)
		default:
			unread = append(unread, i)
		}
	}
	more, err := p.readFiles(ctx, repo, nodes, out, unread)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for _, i := range append(listed, more...) {
		group.Go(func() (err error) {
			out[i].Paths, err = p.listFiles(ctx, repo, nodes[i])
			return err
		})
	}
	return out, group.Wait()
}

// filesAtOnce is how many pull requests one query compares: GitHub gives a query 10 seconds.
const filesAtOnce = 50

// readFiles asks for the files of the nodes at the indexes. It returns the indexes of those that REST has to list.
func (p *Provider) readFiles(ctx context.Context, repo gitprovider.RepoRef, nodes []*pullNode,
	out []gitprovider.PullRequest, unread []int) ([]int, error) {
	var chunks [][]int
	for chunk := range slices.Chunk(unread, filesAtOnce) {
		chunks = append(chunks, chunk)
	}
	left := make([][]int, len(chunks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for c, chunk := range chunks {
		group.Go(func() (err error) {
			left[c], err = p.readChunk(ctx, repo, nodes, out, chunk)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(left...), err
}

const filesDocument = `query($ids: [ID!]!) { nodes(ids: $ids) { ... on PullRequest { ...pull ...changed } } }` +
	pullFragment + changedFragment

func (p *Provider) readChunk(ctx context.Context, repo gitprovider.RepoRef, nodes []*pullNode,
	out []gitprovider.PullRequest, chunk []int) (left []int, err error) {
	ids := make([]string, len(chunk))
	for k, i := range chunk {
		ids[k] = nodes[i].ID
	}
	var data struct{ Nodes []*pullNode }
	op := operation{document: filesDocument, variables: map[string]any{"ids": ids}, need: needPullsRead}
	if err := p.graphql(ctx, op, &data); err != nil {
		return nil, err
	}
	if len(data.Nodes) != len(chunk) {
		return nil, fault.New(fault.UpstreamError, "GitHub showed %d pull requests instead of %d; try again later",
			len(data.Nodes), len(chunk))
	}
	p.keepPaths(repo, data.Nodes)
	for k, i := range chunk {
		n := data.Nodes[k]
		if n == nil {
			left = append(left, i)
			continue
		}
		if paths, ok := n.simplePaths(); ok {
			out[i].Paths = paths
		} else {
			left = append(left, i)
		}
	}
	return left, nil
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
