package github

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// snapshots reads what the gates need to know of a repository.
type snapshots struct {
	api   *api
	pulls pulls
	facts *repositoryFacts
	trees *forge.LRU[string, string] // root tree by commit, which commitWriter needs
	now   func() time.Time
}

// snapshotQuery is one Snapshot at work: what is asked, and what GitHub answered.
type snapshotQuery struct {
	gitprovider.SnapshotQuery
	dirs         []string // folders above the paths, without the root
	open, closed pullList
	recent       pullList // the last updated open ones; unused when the files come along with all
	small        bool     // the first try was too much for GitHub
	repository   repositoryNode
	dynamic      map[string]json.RawMessage // the fields with numbered aliases
}

// repositoryNode is a repository as GraphQL answers the snapshot's query.
type repositoryNode struct {
	ID, Name             string
	DatabaseID           int64
	Owner                person
	URL                  string
	IsArchived, IsLocked bool
	IsDisabled, IsFork   bool
	DefaultBranchRef     *baseNode
	Base                 *baseNode
	Labels               *labelList
	Open, Recent, Closed *pullConnection
	Newest               *struct{ Nodes []struct{ Number int } }
}

// baseNode is the base branch with what is read of its commit.
type baseNode struct {
	Name   string
	Target map[string]json.RawMessage
}

// How many pull requests come along with their files although most were seen before. A head that moved, or a pull
// request that was closed, was updated last, so the first page of the order shows what is new.
const (
	recentOpen   = 20
	recentClosed = 20
)

func (s snapshots) read(ctx context.Context, query gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	q := newSnapshotQuery(query)
	if query.FilesOnly {
		return s.files(ctx, q)
	}
	q.open.files = !s.facts.of(query.Repo).filesRead
	err := s.ask(ctx, q)
	if tooMuch(err) { // then only ours are compared, afterwards
		q.open, q.closed, q.small = q.open.smaller(), q.closed.smaller(), true
		err = s.ask(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.begin(q)
	if err != nil {
		return nil, err
	}
	reads := []func(context.Context) error{func(ctx context.Context) error { return s.readOpen(ctx, q, out) }}
	if !q.ClosedSince.IsZero() {
		reads = append(reads, func(ctx context.Context) error { return s.readClosed(ctx, q, out) })
	}
	if q.Contents {
		reads = append(reads, func(ctx context.Context) (err error) {
			out.Contents, err = s.contents(ctx, out.Repo, q.base().Target, q.Paths)
			return err
		})
	}
	err = forge.Each(ctx, reads, func(ctx context.Context, _ int,
		read func(context.Context) error) error {
		return read(ctx)
	})
	if err != nil {
		return nil, err
	}
	s.facts.noteFilesRead(out.Repo)
	return out, nil
}

// files reads a branch without pull requests.
func (s snapshots) files(ctx context.Context, q *snapshotQuery) (*gitprovider.Snapshot, error) {
	if err := s.ask(ctx, q); err != nil {
		return nil, err
	}
	out, err := s.begin(q)
	if err == nil && q.Contents {
		out.Contents, err = s.contents(ctx, out.Repo, q.base().Target, q.Paths)
	}
	return out, err
}

func newSnapshotQuery(query gitprovider.SnapshotQuery) *snapshotQuery {
	q := &snapshotQuery{SnapshotQuery: query, open: openPulls()}
	for _, path := range query.Paths {
		q.dirs = append(q.dirs, path.Ancestors()...)
	}
	slices.Sort(q.dirs)
	q.dirs = slices.Compact(q.dirs)
	q.recent = pullList{arguments: "states: [OPEN], orderBy: {field: UPDATED_AT, direction: DESC}", files: true}
	q.closed = pullList{arguments: "states: [CLOSED], orderBy: {field: UPDATED_AT, direction: DESC}", size: pageSize,
		files: true, end: query.ClosedSince}
	return q
}

// ask sends the query.
func (s snapshots) ask(ctx context.Context, sq *snapshotQuery) error {
	q := newQuery(sq.Repo)
	q.add(
		"id databaseId name owner { login } url isArchived isLocked isDisabled isFork labels(first: 100) { nodes { name } }")
	commit := sq.commitFields(q)
	if sq.Base == "" {
		q.add("defaultBranchRef { name " + commit + " }")
	} else {
		q.add("defaultBranchRef { name }")
		q.text("base", branchRef(sq.Base))
		q.add("base: ref(qualifiedName: $base) { name " + commit + " }")
	}
	for i, branch := range sq.Branches {
		if gitprovider.CheckBranchName(branch) != nil {
			continue // git has no such branch
		}
		alias := "tip" + strconv.Itoa(i)
		q.text(alias, branchRef(branch))
		q.add(alias + ": ref(qualifiedName: $" + alias + ") { target { oid } }")
	}
	if sq.FilesOnly {
		return s.send(ctx, sq, q)
	}
	// Before the open ones, so that none is opened between them that is in neither.
	q.add("newest: pullRequests(first: 1, orderBy: {field: CREATED_AT, direction: DESC}) { nodes { number } }")
	q.add(sq.open.field("open", sq.open.size, ""))
	if !sq.open.files && !sq.small {
		q.add(sq.recent.field("recent", recentOpen, ""))
	}
	if !sq.ClosedSince.IsZero() {
		q.add(sq.closed.field("closed", recentClosed, ""))
	}
	q.fragment(pullFragment)
	if !sq.small {
		q.fragment(changedFragment)
	}
	return s.send(ctx, sq, q)
}

func (s snapshots) send(ctx context.Context, sq *snapshotQuery, q *query) error {
	q.tolerate = func(e graphError) bool { return e.Type == "NOT_FOUND" && e.under("target") } // a path that is not there
	read := func() error {
		sq.repository = repositoryNode{}
		answer, err := ask[json.RawMessage](ctx, s.api, q, needContents)
		if err != nil {
			return err
		}
		if err := decode(*answer, &sq.repository); err != nil {
			return err
		}
		return decode(*answer, &sq.dynamic)
	}
	noBase := func(err error) bool { return err == nil && sq.base() == nil }
	_, err := s.api.fresh.wait(ctx, branchObject(sq.Repo, sq.Base), noBase, read)
	return err
}

// begin fills in what the query has answered already, and remembers what later calls need.
func (s snapshots) begin(q *snapshotQuery) (*gitprovider.Snapshot, error) {
	r := q.repository
	ref := gitprovider.RepoRef{Owner: r.Owner.Login, Name: r.Name, Remote: q.Repo.Remote}
	base := q.base()
	switch {
	case r.DefaultBranchRef == nil && base == nil:
		return nil, forge.NoFirstCommit(ref)
	case base == nil:
		known := ""
		if r.DefaultBranchRef != nil {
			known = r.DefaultBranchRef.Name
		}
		return nil, forge.NoBase(ref, q.Base, known)
	case r.Open == nil && !q.FilesOnly:
		return nil, notShown("pull requests", ref)
	}
	out := &gitprovider.Snapshot{
		Repo: ref, RepoID: repoID(r.DatabaseID), URL: r.URL, Base: base.Name,
		Archived: r.IsArchived || r.IsLocked || r.IsDisabled, Fork: r.IsFork,
		Tips: map[string]string{}, Contents: map[gitprovider.Path][]byte{},
	}
	if r.Newest != nil && len(r.Newest.Nodes) > 0 {
		out.LastNumber = r.Newest.Nodes[0].Number
	}
	if r.DefaultBranchRef != nil {
		out.DefaultBranch = r.DefaultBranchRef.Name
	}
	var root string
	var err error
	if out.BaseCommit, root, out.Tree, err = q.tree(); err != nil {
		return nil, err
	}
	s.trees.Put(out.BaseCommit, root)
	for i, branch := range q.Branches {
		var tip *refNode
		if err := decodeField(q.dynamic, "tip"+strconv.Itoa(i), &tip); err != nil {
			return nil, err
		}
		if tip != nil {
			out.Tips[branch] = tip.tip()
		}
	}
	s.facts.change(ref, func(f facts) facts {
		f.id, f.labels, f.seen = r.ID, labelKeys(r.Labels.names()), s.now()
		return f
	})
	if r.Recent != nil {
		s.pulls.files.keep(ref, r.Recent.Nodes)
	}
	return out, nil
}

// readClosed reads the list to its end and keeps those pull requests that may be ours and were closed since.
func (s snapshots) readClosed(ctx context.Context, q *snapshotQuery, out *gitprovider.Snapshot) error {
	if q.repository.Closed == nil {
		return notShown("pull requests", out.Repo)
	}
	all, err := s.pulls.readOn(ctx, out.Repo, q.closed, q.repository.Closed)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(n *pullNode) bool {
		pr := n.pullRequest()
		return !gitprovider.MayBeOurs(pr) || pr.ClosedAt.Before(q.ClosedSince)
	})
	out.Closed, err = s.pulls.files.convert(ctx, out.Repo, all)
	return err
}
