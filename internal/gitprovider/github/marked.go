package github

import (
	"cmp"
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

const (
	// maxRefPages bounds, in pages of 100, the branches of ours whose pull requests are looked at for marks. Branches of
	// pull requests that ended long ago count, if nobody removed them.
	maxRefPages = 10
	// pullsOfBranch is how many open pull requests of one branch are looked at: one for each base.
	pullsOfBranch = 5
)

// ownBranches is a page of the branches below gitprovider.BranchPrefix with their open pull requests.
type ownBranches struct {
	PageInfo pageInfo
	Nodes    []*struct {
		AssociatedPullRequests pullConnection
	}
}

func (b *ownBranches) pulls() []*pullNode {
	var out []*pullNode
	for _, ref := range b.Nodes {
		if ref != nil {
			out = append(out, ref.AssociatedPullRequests.Nodes...)
		}
	}
	return slices.DeleteFunc(out, func(n *pullNode) bool { return n == nil })
}

// selectOwn adds a page of our branches to a query. cursor "" asks for the first.
func selectOwn(q *query, cursor string) {
	after := ""
	if cursor != "" {
		q.variable("branchesAfter", "String!", cursor)
		after = ", after: $branchesAfter"
	}
	q.variable("ours", "String!", branchRef(gitprovider.BranchPrefix))
	q.add("branches: refs(refPrefix: $ours, first: " + decimal(pageSize) + after + ") { pageInfo { hasNextPage endCursor } " +
		"nodes { associatedPullRequests(states: [OPEN], first: " + decimal(pullsOfBranch) + ") { nodes { ...pull } } } }")
}

// firstOfList reads the first page of the list, and in the same request the open pull requests of our branches: a mark is
// true only on such a branch, so that those whose label is missing are found without reading everybody's. Each further 100
// branches cost a request, up to maxRefPages.
func (p *Provider) firstOfList(ctx context.Context, repo gitprovider.RepoRef, list pullList) (first *pullConnection,
	own []*pullNode, err error) {
	q := p.pageQuery(repo, list, "")
	selectOwn(q, "")
	var data struct {
		Repository *struct {
			Pulls    *pullConnection
			Branches *ownBranches
		}
	}
	if err := p.graphql(ctx, q.operation(needPullsRead), &data); err != nil {
		return nil, nil, err
	}
	if data.Repository == nil || data.Repository.Pulls == nil {
		return nil, nil, p.notFound()
	}
	at := data.Repository.Branches
	for number := 1; at != nil; number++ {
		own = append(own, at.pulls()...)
		if !at.PageInfo.HasNextPage || at.PageInfo.EndCursor == "" || number == maxRefPages {
			break
		}
		if at, err = p.moreOwn(ctx, repo, at.PageInfo.EndCursor); err != nil {
			return nil, nil, err
		}
	}
	return data.Repository.Pulls, own, nil
}

func (p *Provider) moreOwn(ctx context.Context, repo gitprovider.RepoRef, cursor string) (*ownBranches, error) {
	q := newQuery(repo)
	selectOwn(q, cursor)
	q.fragment(pullFragment)
	var data struct {
		Repository *struct{ Branches *ownBranches }
	}
	if err := p.graphql(ctx, q.operation(needPullsRead), &data); err != nil {
		return nil, err
	}
	if data.Repository == nil {
		return nil, p.notFound()
	}
	return data.Repository.Branches, nil
}

// mergeListed adds those of the nodes that belong into a list by label and are not in it, oldest first.
func mergeListed(list, more []*pullNode, label string) []*pullNode {
	have := map[int]bool{}
	for _, n := range list {
		have[n.Number] = true
	}
	for _, n := range more {
		if !have[n.Number] && gitprovider.Listed(n.pullRequest(), label) {
			have[n.Number] = true
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b *pullNode) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// withoutForks is a list without the pull requests whose head is in a fork: they are never ours.
func withoutForks(list []*pullNode) []*pullNode {
	return slices.DeleteFunc(slices.Clone(list), func(n *pullNode) bool { return n.IsCrossRepository })
}
