package github

import (
	"context"
	"errors"
	"slices"
	"strconv"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// changedFiles finds out which files pull requests change.
type changedFiles struct {
	api   *api
	known *forge.Paths
}

// versionOf names what decides the files of a pull request: they follow from head and base. That the base branch has
// meanwhile taken up a part of the head's commits, so that fewer files differ, shows only when the head changes.
func versionOf(head, base string) string { return head + " " + base }

func (n *pullNode) changesVersion() string { return versionOf(n.HeadRefOid, n.BaseRefName) }

// recall gives what is known of a node's files.
func (f changedFiles) recall(repo gitprovider.RepoRef, n *pullNode) ([]string, bool) {
	return f.known.Get(repo, n.Number, n.changesVersion())
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

// cachePaths remembers the files that came along with the nodes.
func (f changedFiles) cachePaths(repo gitprovider.RepoRef, nodes []*pullNode) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if paths, ok := n.simplePaths(); ok {
			f.known.Put(repo, n.Number, n.changesVersion(), paths)
		}
	}
}

// convert gives nodes as pull requests, with their files: from the nodes themselves, from memory, or by asking.
func (f changedFiles) convert(ctx context.Context, repo gitprovider.RepoRef,
	nodes []*pullNode) ([]gitprovider.PullRequest,
	error) {
	f.cachePaths(repo, nodes)
	for _, n := range nodes {
		f.api.fresh.addPull(repo, n)
	}
	if err := f.readChangedFiles(ctx, repo, f.unread(repo, nodes)); err != nil {
		return nil, err
	}
	out := make([]gitprovider.PullRequest, len(nodes))
	err := forge.Each(ctx, nodes, func(ctx context.Context, i int, n *pullNode) (err error) {
		out[i] = n.pullRequest()
		out[i].Paths, err = f.listChangedFiles(ctx, repo, n)
		return err
	})
	return out, err
}

// unread gives those of the nodes whose files neither came along nor are known from before.
func (f changedFiles) unread(repo gitprovider.RepoRef, nodes []*pullNode) []*pullNode {
	var out []*pullNode
	for _, n := range nodes {
		if _, known := f.recall(repo, n); !known && n.Files == nil {
			out = append(out, n)
		}
	}
	return out
}

// filesAtOnce is the number of pull requests that one query compares: GitHub gives a query 10 seconds.
const filesAtOnce = 50

// readChangedFiles asks for the files of the nodes, fills them in and remembers them. What GraphQL does not tell, or
// not in full, REST has to list.
func (f changedFiles) readChangedFiles(ctx context.Context, repo gitprovider.RepoRef, nodes []*pullNode) error {
	chunks := slices.Collect(slices.Chunk(nodes, filesAtOnce))
	return forge.Each(ctx, chunks, func(ctx context.Context, _ int, chunk []*pullNode) error {
		return f.readChunk(ctx, repo, chunk)
	})
}

const filesDocument = `query($ids: [ID!]!) { nodes(ids: $ids) { ... on PullRequest { ...pull ...changed } } }` +
	pullFragment + changedFragment

func (f changedFiles) readChunk(ctx context.Context, repo gitprovider.RepoRef, chunk []*pullNode) error {
	ids := make([]string, len(chunk))
	for i, n := range chunk {
		ids[i] = n.ID
	}
	var data struct{ Nodes []*pullNode }
	op := operation{document: filesDocument, variables: map[string]any{"ids": ids}, need: needPullsRead}
	switch err := f.api.graphql(ctx, op, &data); {
	case tooMuch(err) && len(chunk) > 1:
		half := len(chunk) / 2
		return errors.Join(f.readChunk(ctx, repo, chunk[:half]), f.readChunk(ctx, repo, chunk[half:]))
	case tooMuch(err): // REST lists them
		return nil
	case err != nil:
		return err
	}
	if len(data.Nodes) != len(chunk) {
		return fault.New(fault.UpstreamError, "GitHub showed %d pull requests instead of %d; try again later",
			len(data.Nodes), len(chunk))
	}
	f.cachePaths(repo, data.Nodes)
	for i, n := range data.Nodes {
		if n == nil {
			continue
		}
		// A head that moved since the list was read has other files: they count for the new one alone.
		if chunk[i].Files = n.Files; n.changesVersion() != chunk[i].changesVersion() {
			*chunk[i] = *n
		}
	}
	return nil
}

// maxFilePages is GitHub's limit: it lists at most 3000 files (docs.github.com, "List pull requests files").
const maxFilePages = 30

// listChangedFiles gives the changed files from memory, or reads them by REST, which tells both names of a rename.
func (f changedFiles) listChangedFiles(ctx context.Context, repo gitprovider.RepoRef, n *pullNode) ([]string, error) {
	if paths, known := f.recall(repo, n); known {
		return paths, nil
	}
	var paths []string
	u := f.api.repoURL(repo, "pulls", strconv.Itoa(n.Number), "files")
	for number := 1; number <= maxFilePages; number++ {
		var files []*gogithub.CommitFile
		var resp *gogithub.Response
		err := f.api.fresh.onPull(ctx, repo, n.Number, func() (err error) {
			resp, err = f.api.get(ctx, pageURL(u, number), needPullsRead, &files)
			return err
		})
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
	f.known.Put(repo, n.Number, n.changesVersion(), paths)
	return paths, nil
}
