package github

import (
	"cmp"
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// readOpen fills in the open pull requests: ours, and if they are asked for those of others. What the latter change is
// known from the list itself, from an earlier look, or from the one request that reads ours; REST is asked about ours
// alone.
func (s snapshots) readOpen(ctx context.Context, q *snapshotQuery, out *gitprovider.Snapshot) error {
	all, err := s.pulls.readOn(ctx, out.Repo, q.open, q.repository.Open)
	if err != nil {
		return err
	}
	files := s.pulls.files
	var ours, others []*pullNode
	for _, n := range all {
		switch {
		case gitprovider.MayBeOurs(n.pullRequest()):
			ours = append(ours, n)
		case q.Foreign && n.BaseRefName == out.Base:
			others = append(others, n)
		}
	}
	files.keep(out.Repo, ours)
	files.keep(out.Repo, others)
	unread := files.unread(out.Repo, ours)
	if more := newest(files.unread(out.Repo, others)); len(more) > 0 {
		// Failing to read the files of others is not an error: those are counted as unread, and ours are read separately.
		if files.read(ctx, out.Repo, slices.Concat(unread, more)) == nil {
			unread = nil
		}
	}
	if err := files.read(ctx, out.Repo, unread); err != nil {
		return err
	}
	if out.Open, err = files.convert(ctx, out.Repo, ours); err != nil {
		return err
	}
	for _, n := range others {
		files.addForeign(out, n)
	}
	return nil
}

// newest gives the latest MaxForeign of the nodes.
func newest(nodes []*pullNode) []*pullNode {
	slices.SortFunc(nodes, func(a, b *pullNode) int { return cmp.Compare(b.Number, a.Number) })
	return nodes[:min(len(nodes), gitprovider.MaxForeign)]
}

// addForeign adds a pull request of others with what is known of its files.
func (f changedFiles) addForeign(out *gitprovider.Snapshot, n *pullNode) {
	pr := n.pullRequest()
	paths, known := f.recall(out.Repo, n)
	if !known {
		out.ForeignUnread++
		if n.Files == nil {
			return
		}
		for _, file := range n.Files.Nodes {
			paths = append(paths, file.Path)
		}
	}
	pr.Paths = paths
	out.Foreign = append(out.Foreign, pr)
}
