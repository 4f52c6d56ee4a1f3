package github

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// lists reads the open pull requests with a label or a mark.
type lists struct {
	pulls pulls
	facts *repositoryFacts
	kept  *forge.LRU[string, listing] // by listingKey
	now   func() time.Time
}

func (l lists) open(ctx context.Context, repo gitprovider.RepoRef, label string) ([]gitprovider.PullRequest, error) {
	began := l.now()
	changed, last, ok, err := l.changed(ctx, repo, label)
	if err != nil {
		return nil, err
	}
	if ok {
		return l.pulls.files.convert(ctx, repo, withoutForks(changed))
	}
	list := labelledPulls(label)
	list.files = !l.facts.of(repo).filesRead
	first, marked, err := l.firstPage(ctx, repo, list)
	if tooMuch(err) {
		list = list.smaller()
		first, marked, err = l.firstPage(ctx, repo, list)
	}
	if err != nil {
		return nil, err
	}
	all, err := l.pulls.readOn(ctx, repo, list, first)
	if err != nil {
		return nil, err
	}
	all = mergeListed(all, marked, label)
	prs, err := l.pulls.files.convert(ctx, repo, withoutForks(all))
	if err == nil {
		l.keep(repo, label, all, last, began)
		l.facts.noteFilesRead(repo)
	}
	return prs, err
}

const (
	// maxRefPages bounds, in pages of 100, our branches whose pull requests are searched for marks. Branches of pull
	// requests that ended long ago count unless they were removed.
	maxRefPages = 10
	// pullsOfBranch limits the open pull requests of one branch that are read: one for each base.
	pullsOfBranch = 5
)

// ownBranches is a page of the branches below gitprovider.BranchPrefix with their open pull requests.
type ownBranches = connection[struct{ AssociatedPullRequests pullConnection }]

// selectOwn adds a page of our branches to a query. after is the argument that names its cursor.
func selectOwn(q *query, size int, after string) {
	q.text("ours", branchRef(gitprovider.BranchPrefix))
	q.add("branches: refs(refPrefix: $ours, first: " + strconv.Itoa(size) + after +
		") { pageInfo { hasNextPage endCursor } " +
		"nodes { associatedPullRequests(states: [OPEN], first: " + strconv.Itoa(pullsOfBranch) +
		") { nodes { ...pull } } } }")
}

// firstPage reads the first page of the list, and in the same request the open pull requests of our branches: a mark is
// true only on such a branch, so that those whose label is missing are found without reading everybody's. Each further
// 100 branches cost a request, up to maxRefPages.
func (l lists) firstPage(ctx context.Context, repo gitprovider.RepoRef, list pullList) (first *pullConnection,
	own []*pullNode,
	err error) {
	q := list.query(repo, "")
	selectOwn(q, list.size, "")
	from, err := ask[struct {
		Pulls    *pullConnection
		Branches *ownBranches
	}](ctx, l.pulls.api, q, needPullsRead)
	if err != nil {
		return nil, nil, err
	}
	if from.Pulls == nil {
		return nil, nil, notShown("pull requests", repo)
	}
	pages := 1
	refs, err := follow(from.Branches, func(last *ownBranches) (*ownBranches, error) {
		if pages++; pages > maxRefPages*pageSize/list.size {
			return nil, nil
		}
		q := newQuery(repo)
		selectOwn(q, list.size, q.after(last.PageInfo.EndCursor))
		q.fragment(pullFragment)
		next, err := ask[struct{ Branches *ownBranches }](ctx, l.pulls.api, q, needPullsRead)
		if err != nil {
			return nil, err
		}
		return next.Branches, nil
	})
	for _, ref := range refs {
		own = append(own, ref.AssociatedPullRequests.Nodes...)
	}
	return from.Pulls, slices.DeleteFunc(own, func(n *pullNode) bool { return n == nil }), err
}

func byNumber(a, b *pullNode) int { return cmp.Compare(a.Number, b.Number) }

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
	slices.SortStableFunc(list, byNumber)
	return list
}

// withoutForks returns a list without the pull requests whose head is in a fork: they are never ours.
func withoutForks(list []*pullNode) []*pullNode {
	return slices.DeleteFunc(slices.Clone(list), func(n *pullNode) bool { return n.IsCrossRepository })
}
