package github

import (
	"cmp"
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// readOpen fills in the open pull requests: ours, and if they are asked for those of others. What the latter change is known
// from the list itself, from an earlier look, or from the one request that reads ours; REST is asked about ours alone.
func (p *Provider) readOpen(ctx context.Context, l *look, out *gitprovider.Snapshot) error {
	all, err := p.readOn(ctx, out.Repo, l.open, l.repository.Open)
	if err != nil {
		return err
	}
	var ours, others []*pullNode
	for _, n := range all {
		switch {
		case gitprovider.MayBeOurs(n.pullRequest()):
			ours = append(ours, n)
		case l.Foreign && n.BaseRefName == out.Base:
			others = append(others, n)
		}
	}
	p.keepPaths(out.Repo, ours)
	p.keepPaths(out.Repo, others)
	unread := p.unread(out.Repo, ours)
	if more := newest(p.unread(out.Repo, others)); len(more) > 0 {
		// That the files of others cannot be read is no reason to fail: they are counted, and ours are read without.
		if p.readFiles(ctx, out.Repo, slices.Concat(unread, more)) == nil {
			unread = nil
		}
	}
	if err := p.readFiles(ctx, out.Repo, unread); err != nil {
		return err
	}
	if out.Open, err = p.pullRequests(ctx, out.Repo, ours); err != nil {
		return err
	}
	for _, n := range others {
		p.addForeign(out, n)
	}
	return nil
}

// newest gives the latest MaxForeign of the nodes.
func newest(nodes []*pullNode) []*pullNode {
	slices.SortFunc(nodes, func(a, b *pullNode) int { return cmp.Compare(b.Number, a.Number) })
	return nodes[:min(len(nodes), gitprovider.MaxForeign)]
}

// addForeign adds a pull request of others with what is known of its files.
func (p *Provider) addForeign(out *gitprovider.Snapshot, n *pullNode) {
	pr := n.pullRequest()
	paths, known := p.files.get(keyOf(out.Repo, n))
	if !known {
		out.ForeignUnread++
		if n.Files == nil {
			return
		}
		for _, file := range n.Files.Nodes {
			paths = append(paths, file.Path)
		}
	}
	pr.Paths = slices.Clone(paths)
	out.Foreign = append(out.Foreign, pr)
}
