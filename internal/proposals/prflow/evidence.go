package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// evidence holds what was read for one request: from its repository at the provider, and from our own record. Its
// methods read more when a gate needs it; none writes.
type evidence struct {
	resolution gitprovider.Resolution
	unresolved *fault.Error           // why there is no resolution
	snapshot   *gitprovider.Snapshot  // nil if the repository was not read
	seen       record.Position        // where the record stood before the snapshot was taken
	marks      map[int]mark           // the true marks of the snapshot's pull requests, by number
	usage      record.Usage           // of the caps
	lines      []FileLines            // how the files differ from the base branch, sorted by path
	attributes gitprovider.Attributes // of the files of the request, as far as the branch has any
	revision   *revision              // what the request adds to; nil if it opens a pull request of its own

	registry *gitprovider.Registry
	history  History
	settler  *settler // tells whose a pull request is
	log      redactedLog
}

// resolve finds the provider of the repository.
func (e *evidence) resolve(r *request) {
	var err error
	switch {
	case r.repo.Owner == "":
		return
	case r.promoted != nil:
		e.resolution, err = e.registry.ResolveAt(r.promoted.Provider, r.repo)
	default:
		e.resolution, err = e.registry.Resolve(r.repo)
	}
	e.unresolved = fault.From(err)
}

// mayRead reports whether the provider may be asked.
func (e *evidence) mayRead(on rules) bool {
	p := e.resolution.Provider
	return p != nil && e.unresolved == nil && notListed(on.Policy, p.Name(), e.resolution.Repo) == nil
}

// read takes the snapshot that everything is judged by.
func (e *evidence) read(ctx context.Context, q gitprovider.SnapshotQuery) error {
	seen, err := e.history.Position(ctx)
	if err != nil {
		return err
	}
	snapshot, err := e.resolution.Provider.Snapshot(ctx, q)
	if err != nil {
		return err
	}
	if err := e.sortByOrigin(snapshot); err != nil {
		return err
	}
	e.seen, e.snapshot = seen, snapshot
	return nil
}

// readPullsAgain reads the pull requests once more. The base branch stays what the other gates have judged.
func (e *evidence) readPullsAgain(ctx context.Context, closedSince time.Time) error {
	was := *e.snapshot
	err := e.read(ctx, gitprovider.SnapshotQuery{Repo: was.Repo, Base: was.Base, ClosedSince: closedSince, Foreign: true})
	if err != nil {
		return err
	}
	now := e.snapshot
	was.Open, was.Closed, was.LastNumber = now.Open, now.Closed, now.LastNumber
	was.Foreign, was.ForeignUnread = now.Foreign, now.ForeignUnread
	e.snapshot = &was
	return nil
}

// sortByOrigin takes the pull requests that only claim to be ours for those of others, and keeps the true marks.
func (e *evidence) sortByOrigin(snapshot *gitprovider.Snapshot) error {
	reader, err := e.settler.marksOf(e.resolution.Provider.Name(), snapshot.Repo)
	if err != nil {
		return err
	}
	e.marks = map[int]mark{}
	isForeign := func(pr gitprovider.PullRequest) bool {
		m, isTrue := reader.read(pr)
		if isTrue {
			e.marks[pr.Number] = m
		}
		return !isTrue && !gitprovider.ClearlyOurs(pr)
	}
	for _, pr := range snapshot.Open {
		if isForeign(pr) && pr.Base == snapshot.Base {
			snapshot.Foreign = append(snapshot.Foreign, pr)
		}
	}
	snapshot.Open = slices.DeleteFunc(snapshot.Open, isForeign)
	snapshot.Closed = slices.DeleteFunc(snapshot.Closed, isForeign)
	return nil
}

// digest identifies the change at its place.
func (e *evidence) digest(r *request) string {
	files := r.digests.files
	if r.asked.Revises > 0 { // as asked for: once it is made, edits do not fit any more
		files = hashJSON(append([]any{"revises", r.asked.Revises, r.digests.asked}, r.asked.identity()...))
	}
	return changeDigest(e.resolution.Provider.Name(), e.snapshot.Repo, e.snapshot.Base, files)
}

// closedByUs reports whether it was our doing that a pull request was closed: it was withdrawn, or its branch was
// removed before it was there to be seen. The first a mark says, whosever key it is signed with, the second the
// records.
func (e *evidence) closedByUs(ctx context.Context, pr gitprovider.PullRequest) (bool, error) {
	if newMarkReader(nil, e.resolution.Provider.Name(), e.snapshot.Repo).withdrawn(pr) {
		return true, nil
	}
	m, ours := e.marks[pr.Number]
	if !ours {
		return false, nil
	}
	return e.history.Undone(ctx, m.Request)
}

// rememberPaths fills in, from the record, the paths of rejected pull requests whose branch the provider has no more.
func (e *evidence) rememberPaths(ctx context.Context) error {
	repo := e.snapshot.Repo
	for i, pr := range e.snapshot.Closed {
		if len(pr.Paths) > 0 {
			continue
		}
		paths, err := e.history.PathsOf(ctx, e.resolution.Provider.Name(), repo.Owner, repo.Name, pr.Number)
		if err != nil {
			return err
		}
		e.snapshot.Closed[i].Paths = paths
	}
	return nil
}

// lastRemark returns the last review or comment of a person who may decide about the pull request: most rejections are
// given by "comment and close". It is nil if there is none or it cannot be read: the cooldown applies without it.
func (e *evidence) lastRemark(ctx context.Context, number int) *fault.Quote {
	reader, can := e.resolution.Provider.(gitprovider.RemarkReader)
	if !can {
		return nil
	}
	remarks, err := reader.Remarks(ctx, e.snapshot.Repo, number)
	last := gitprovider.LastRemark(remarks)
	if err != nil {
		e.log.warn("remarks not read", err, "pr", number)
	}
	if err != nil || last == nil {
		return nil
	}
	return quoted(last, last.Lines)
}

// capWindow is the period that the cap on creations counts.
const capWindow = time.Hour

// claim tells the transaction that reserves what was read before.
func (e *evidence) claim() record.Claim {
	claim := record.Claim{Seen: e.seen, Within: capWindow}
	for _, pr := range e.snapshot.Open {
		claim.Open = append(claim.Open, record.OpenPull{Number: pr.Number, Head: pr.HeadCommit,
			Request: e.marks[pr.Number].Request})
	}
	return claim
}

// notListed denies a repository that is not on the operator's list, if there is one.
func notListed(p policy.Policy, provider string, repo gitprovider.RepoRef) *fault.Violation {
	if _, ok := p.AllowsRepo(provider, repo.Owner, repo.Name); ok {
		return nil
	}
	var allowed []string
	for _, r := range p.AllRepositories() {
		allowed = append(allowed, r.String())
	}
	list := "on the operator's list"
	if len(p.Targets.CallersRepositories) > 0 {
		list = "on the lists of the operator and of this token"
	}
	return &fault.Violation{
		Code: fault.RepoNotAllowed, Rule: "repositories", Final: true,
		Message: fmt.Sprintf("the repository %s at %s is not %s (%s)",
			repo, provider, list, strings.Join(allowed, ", ")),
		Suggestion: "use a repository on the list, or ask the operator to add this one",
	}
}

// branchHolds reports whether the branch has exactly what the changes ask for at their paths.
func branchHolds(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, branch string, changes []gitprovider.Change,
) (bool, error) {
	query := gitprovider.SnapshotQuery{Repo: repo, Base: branch, FilesOnly: true}
	for _, change := range changes {
		query.Paths = append(query.Paths, change.Path)
	}
	snapshot, err := p.Snapshot(ctx, query)
	if err != nil {
		return false, err
	}
	for _, change := range changes {
		entry, exists := snapshot.Tree[change.Path.String()]
		wanted := change.Action != gitprovider.ActionDelete
		if exists != wanted || wanted && entry.ID != gitprovider.BlobID([]byte(change.Content), entry.ID) {
			return false, nil
		}
	}
	return true, nil
}

// parent returns the commit that ours is made on.
func (e *evidence) parent() string { return e.target().BaseCommit }
