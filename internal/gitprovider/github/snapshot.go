package github

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Snapshot implements gitprovider.Provider with one query. Further requests follow only for further pages of pull
// requests, for the files of those that were never seen before, and for contents that GraphQL cannot carry.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	ctx = about(ctx, q.Repo)
	snapshot, err := p.snapshot(ctx, q)
	if err != nil {
		return nil, publish(err)
	}
	return snapshot, nil
}

// look is one Snapshot at work.
type look struct {
	gitprovider.SnapshotQuery
	dirs         []string // folders above the paths, without the root
	open, closed pullList
	recent       pullList // the last updated open ones; unused when the files come along with all
	repository   repositoryNode
	dynamic      map[string]json.RawMessage // the fields with numbered aliases
}

// repositoryNode is a repository as GraphQL answers the snapshot's query.
type repositoryNode struct {
	ID, Name             string
	Owner                struct{ Login string }
	URL                  string
	IsArchived, IsLocked bool
	IsDisabled, IsFork   bool
	DefaultBranchRef     *refNode
	Base                 *refNode
	Labels               *struct{ Nodes []struct{ Name string } }
	Open, Recent, Closed *pullConnection
	Newest               *struct{ Nodes []struct{ Number int } }
}

type refNode struct {
	Name   string
	Target map[string]json.RawMessage
}

// How many pull requests come along with their files although most were seen before. A head that moved, or a pull request
// that was closed, was updated last, so the first page of the order shows what is new.
const (
	recentOpen   = 20
	recentClosed = 20
)

func (p *Provider) snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	l := newLook(q)
	known, _ := p.facts.get(repoKey(q.Repo))
	l.open = openPulls()
	l.open.files = !known.warm
	err := p.ask(ctx, l)
	if l.open.files && errors.Is(err, errGaveUp{}) { // too many comparisons for one query; then only ours are compared
		l.open.files = false
		err = p.ask(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	out, err := p.begin(l)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.readOpen(ctx, l, out) })
	if !q.ClosedSince.IsZero() {
		group.Go(func() error { return p.readClosed(ctx, l, out) })
	}
	if q.Contents {
		group.Go(func() (err error) {
			out.Contents, err = p.contents(ctx, out.Repo, l.target(), q.Paths)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p.facts.update(repoKey(out.Repo), func(f facts) facts { f.warm = true; return f })
	return out, nil
}

func newLook(q gitprovider.SnapshotQuery) *look {
	l := &look{SnapshotQuery: q}
	for _, path := range q.Paths {
		l.dirs = append(l.dirs, path.Ancestors()...)
	}
	slices.Sort(l.dirs)
	l.dirs = slices.Compact(l.dirs)
	l.recent = pullList{arguments: "states: [OPEN], orderBy: {field: UPDATED_AT, direction: DESC}", files: true}
	l.closed = pullList{arguments: "states: [CLOSED], orderBy: {field: UPDATED_AT, direction: DESC}", size: pageSize,
		files: true, end: q.ClosedSince}
	return l
}

// ask sends the query.
func (p *Provider) ask(ctx context.Context, l *look) error {
	q := newQuery(l.Repo)
	q.add("id name owner { login } url isArchived isLocked isDisabled isFork labels(first: 100) { nodes { name } }")
	commit := l.commitFields(q)
	if l.Base == "" {
		q.add("defaultBranchRef { name " + commit + " }")
	} else {
		q.add("defaultBranchRef { name }")
		q.variable("base", "String!", branchRef(l.Base))
		q.add("base: ref(qualifiedName: $base) { name " + commit + " }")
	}
	for i, branch := range l.Branches {
		if gitprovider.CheckBranchName(branch) != nil {
			continue // git has no such branch
		}
		alias := "tip" + decimal(i)
		q.variable(alias, "String!", branchRef(branch))
		q.add(alias + ": ref(qualifiedName: $" + alias + ") { target { oid } }")
	}
	q.add(l.open.field("open", pageSize, ""))
	if !l.open.files {
		q.add(l.recent.field("recent", recentOpen, ""))
	}
	if !l.ClosedSince.IsZero() {
		q.add(l.closed.field("closed", recentClosed, ""))
	}
	q.add("newest: pullRequests(first: 1, orderBy: {field: CREATED_AT, direction: DESC}) { nodes { number } }")
	q.fragment(pullFragment + changedFragment)
	q.tolerate = func(e graphError) bool { return e.Type == "NOT_FOUND" && e.under("target") } // a path that is not there
	var data struct{ Repository json.RawMessage }
	if err := p.graphql(ctx, q.operation(needContents), &data); err != nil {
		return err
	}
	if len(data.Repository) == 0 || string(data.Repository) == "null" {
		return p.notFound()
	}
	if err := json.Unmarshal(data.Repository, &l.repository); err != nil {
		return notJSON(err)
	}
	if err := json.Unmarshal(data.Repository, &l.dynamic); err != nil {
		return notJSON(err)
	}
	return nil
}

// begin fills in what the query has answered already.
func (p *Provider) begin(l *look) (*gitprovider.Snapshot, error) {
	r := l.repository
	ref := gitprovider.RepoRef{Owner: r.Owner.Login, Name: r.Name, Remote: l.Repo.Remote}
	base := l.ref()
	switch {
	case r.DefaultBranchRef == nil && base == nil:
		return nil, fault.New(fault.NotFound, "the repository %s has no commit yet; make a first one", ref)
	case base == nil:
		return nil, fault.New(fault.NotFound, "the repository %s has no branch %s; name an existing base branch", ref,
			clean(l.Base))
	case r.Open == nil:
		return nil, fault.New(fault.UpstreamError, "GitHub did not show the pull requests of %s; try again later", ref)
	}
	out := &gitprovider.Snapshot{
		Repo: ref, URL: r.URL, Base: base.Name, Archived: r.IsArchived || r.IsLocked || r.IsDisabled, Fork: r.IsFork,
		Tips: map[string]string{}, Contents: map[gitprovider.Path][]byte{},
	}
	if r.Newest != nil && len(r.Newest.Nodes) > 0 {
		out.LastNumber = r.Newest.Nodes[0].Number
	}
	if r.DefaultBranchRef != nil {
		out.DefaultBranch = r.DefaultBranchRef.Name
	}
	var err error
	if out.BaseCommit, out.Tree, err = l.tree(p); err != nil {
		return nil, err
	}
	if err := l.tips(out.Tips); err != nil {
		return nil, err
	}
	p.learn(ref, r)
	return out, nil
}

// learn remembers what later calls need.
func (p *Provider) learn(ref gitprovider.RepoRef, r repositoryNode) {
	labels := map[string]bool{}
	if r.Labels != nil {
		for _, label := range r.Labels.Nodes {
			labels[labelKey(label.Name)] = true
		}
	}
	p.facts.update(repoKey(ref), func(f facts) facts {
		f.id, f.labels, f.seen = r.ID, labels, p.now()
		return f
	})
	if r.Recent != nil {
		p.keepPaths(ref, r.Recent.Nodes)
	}
}

// readClosed reads the list to its end and keeps those pull requests that may be ours and were closed since.
func (p *Provider) readClosed(ctx context.Context, l *look, out *gitprovider.Snapshot) error {
	if l.repository.Closed == nil {
		return fault.New(fault.UpstreamError, "GitHub did not show the pull requests of %s; try again later", out.Repo)
	}
	all, err := p.readOn(ctx, out.Repo, l.closed, l.repository.Closed)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(n *pullNode) bool {
		pr := n.pullRequest()
		return !gitprovider.MayBeOurs(pr) || pr.ClosedAt.Before(l.ClosedSince)
	})
	out.Closed, err = p.pullRequests(ctx, out.Repo, all)
	return err
}

// branchRef is the full name of a branch: GitHub takes a short one for a tag as well.
func branchRef(branch string) string { return "refs/heads/" + branch }
