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

// pullLists reads the open pull requests with a label or a mark.
type pullLists struct {
	pulls pulls
	facts *repositoryFacts
	kept  *forge.LRU[string, listing] // by listingKey
	now   func() time.Time
}

func (l pullLists) readOpenPulls(ctx context.Context, repo gitprovider.RepoRef,
	label string) ([]gitprovider.PullRequest, error) {
	began := l.now()
	changed, last, ok, err := l.changed(ctx, repo, label)
	if err != nil {
		return nil, err
	}
	if ok {
		return l.pulls.files.convert(ctx, repo, withoutForks(changed))
	}
	list := labelledPulls(label)
	list.files = !l.facts.cached(repo).filesRead
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
		l.cacheListing(repo, label, all, last, began)
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
	q.textVariable("ours", branchRef(gitprovider.BranchPrefix))
	q.selectField("branches: refs(refPrefix: $ours, first: " + strconv.Itoa(size) + after +
		") { pageInfo { hasNextPage endCursor } " +
		"nodes { associatedPullRequests(states: [OPEN], first: " + strconv.Itoa(pullsOfBranch) +
		") { nodes { ...pull } } } }")
}

// firstPage reads the first page of the list, and in the same request the open pull requests of our branches: a mark is
// true only on such a branch, so that those whose label is missing are found without reading everybody's. Each further
// 100 branches cost a request, up to maxRefPages.
func (l pullLists) firstPage(ctx context.Context, repo gitprovider.RepoRef, list pullList) (first *pullConnection,
	own []*pullNode,
	err error) {
	q := list.query(repo, "")
	selectOwn(q, list.size, "")
	from, err := queryRepository[struct {
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
	refs, err := collectPages(from.Branches, func(last *ownBranches) (*ownBranches, error) {
		if pages++; pages > maxRefPages*pageSize/list.size {
			return nil, nil
		}
		q := newQuery(repo)
		selectOwn(q, list.size, q.cursorArgument(last.PageInfo.EndCursor))
		q.fragment(pullFragment)
		next, err := queryRepository[struct{ Branches *ownBranches }](ctx, l.pulls.api, q, needPullsRead)
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

const (
	// changedSize limits the pull requests that are searched for changes, the last changed first. If more than these have
	// changed, the whole list is read.
	changedSize = 50
	// changedMargin is how far before the last seen change the search starts: changes with an earlier date may have become
	// visible later.
	changedMargin = 2 * time.Minute
	// listingFresh is how long a list is kept up to date by its changes before the whole list is read again.
	listingFresh = time.Hour
	// maxListings bounds, in bytes of titles and bodies, the lists that are kept.
	maxListings = 16 << 20
)

// listing is a list of open pull requests as it was after the last change that was seen. It does not change once it is
// made.
type listing struct {
	nodes []*pullNode // by number
	last  time.Time   // change that was seen
	read  time.Time   // when it was read whole, by our clock
}

func weightOfListing(l listing) int {
	const overhead = 1024
	total := 0
	for _, n := range l.nodes {
		total += len(n.Title) + len(n.Body) + overhead
	}
	return total
}

func listingKey(repo gitprovider.RepoRef, label string) string {
	return forge.RepoKey(repo) + "\n" + labelKey(label)
}

// changedPulls returns all pull requests, the last changed first. GitHub dates everything that can bring one into a
// list, out of it, or change what is shown of it: opening, closing, merging, pushes, labels, titles, bodies and base
// branches.
func changedPulls() pullList {
	return pullList{arguments: "states: [OPEN, CLOSED, MERGED], orderBy: {field: UPDATED_AT, direction: DESC}",
		size: changedSize}
}

// changed brings a list that was read before up to date, with one request whatever its length. ok is false if it was
// not read before or is so short that to read it costs one request, too, if too much has changed since, or if what
// comes out has not as many with the label as GitHub says: then it has to be read whole, and last is the last change
// that was seen before that, if any was.
func (l pullLists) changed(ctx context.Context, repo gitprovider.RepoRef, label string) (nodes []*pullNode,
	last time.Time,
	ok bool,
	err error) {
	known, found := l.kept.Get(listingKey(repo, label))
	if !found || len(known.nodes) <= pageSize || l.now().Sub(known.read) > listingFresh {
		return nil, time.Time{}, false, nil
	}
	changed, total, err := l.changes(ctx, repo, label)
	if tooMuch(err) {
		return nil, time.Time{}, false, nil
	}
	if err != nil {
		return nil, time.Time{}, false, err
	}
	if len(changed.Nodes) > 0 && changed.Nodes[0] != nil {
		last = changed.Nodes[0].UpdatedAt
	}
	if !reaches(changed, known.last.Add(-changedMargin)) {
		return nil, last, false, nil
	}
	nodes = known.withChanges(changed.Nodes, label)
	labelled := 0
	for _, n := range nodes {
		if n.labelled(label) {
			labelled++
		}
	}
	if labelled != total {
		return nil, last, false, nil
	}
	l.kept.Put(listingKey(repo, label), listing{nodes: nodes, last: later(last, known.last), read: known.read})
	return nodes, last, true, nil
}

// changes reads what was changed last, and how many pull requests are in the list.
func (l pullLists) changes(ctx context.Context, repo gitprovider.RepoRef, label string) (*pullConnection, int, error) {
	q, list := newQuery(repo), changedPulls()
	q.textVariable("label", label)
	q.selectField("labelled: pullRequests(states: [OPEN], labels: [$label], first: 1) { totalCount }")
	q.selectField(list.pageSelection("changed", list.size, ""))
	q.fragment(pullFragment)
	from, err := queryRepository[struct {
		Labelled *struct{ TotalCount int }
		Changed  *pullConnection
	}](ctx, l.pulls.api, q, needPullsRead)
	if err != nil {
		return nil, 0, err
	}
	if from.Changed == nil || from.Labelled == nil {
		return nil, 0, notShown("pull requests", repo)
	}
	return from.Changed, from.Labelled.TotalCount, nil
}

// reaches reports whether a list of the last changed shows everything that was changed at a time or later.
func reaches(c *pullConnection, at time.Time) bool {
	if slices.Contains(c.Nodes, nil) { // one that the token may not see
		return false
	}
	return !c.PageInfo.HasNextPage || c.Nodes[len(c.Nodes)-1].UpdatedAt.Before(at)
}

// withChanges returns the list after changes.
func (l listing) withChanges(changed []*pullNode, label string) []*pullNode {
	now := map[int]*pullNode{}
	for _, n := range changed {
		now[n.Number] = n
	}
	out := slices.DeleteFunc(slices.Clone(l.nodes), func(n *pullNode) bool { return now[n.Number] != nil })
	for _, n := range now {
		if n.State == "OPEN" && (n.labelled(label) || gitprovider.Listed(n.pullRequest(), label)) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, byNumber)
	return out
}

func (n *pullNode) labelled(label string) bool { return labelKeys(n.Labels.names())[labelKey(label)] }

// cacheListing remembers a list that was read whole. last is a change that was seen before it was read; zero: the last
// one in the list is.
func (l pullLists) cacheListing(repo gitprovider.RepoRef, label string, nodes []*pullNode, last, began time.Time) {
	if last.IsZero() {
		for _, n := range nodes {
			last = later(last, n.UpdatedAt)
		}
	}
	if last.IsZero() {
		return
	}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, byNumber)
	l.kept.Put(listingKey(repo, label), listing{nodes: nodes, last: last, read: began})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
