package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// evidence holds what was read for one request: from its repository at the provider, and from our own record. Its
// methods read more when a gate needs it; none writes.
type evidence struct {
	resolution gitprovider.Resolution
	unresolved *fault.Error                // why there is no resolution
	snapshot   *gitprovider.Snapshot       // nil if the repository was not read
	seen       record.Position             // where the record stood before the snapshot was taken
	marks      map[int]mark                // the true marks of the snapshot's pull requests, by number
	usage      record.Usage                // of the caps
	lines      []FileLines                 // how the files differ from the base branch, sorted by path
	attributes gitprovider.Attributes      // of the files of the request, as far as the branch has any
	facts      facts.Reading               // what the change names and would do, against the base branch
	onBase     map[gitprovider.Path][]byte // texts of a revised pull request's files; nil until they are read
	recorded   []facts.Fact                // of the files that a revision leaves as they are
	hosts      map[string]bool             // that other files in scope name; nil until they are read
	revision   *revision                   // what the request adds to; nil if it opens a pull request of its own

	registry *gitprovider.Registry
	history  History
	settler  *settler // tells whose a pull request is
	log      redactedLog
}

// resolve finds the provider of the repository.
func (e *evidence) resolve(r *createRequest) {
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

// loadSnapshot takes the snapshot that everything is judged by.
func (e *evidence) loadSnapshot(ctx context.Context, q gitprovider.SnapshotQuery) error {
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
	err := e.loadSnapshot(ctx, gitprovider.SnapshotQuery{Repo: was.Repo, Base: was.Base, ClosedSince: closedSince,
		Foreign: true})
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
		m, isTrue := reader.firstSigned(pr)
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
func (e *evidence) digest(r *createRequest) string {
	files := r.digests.files
	if r.asked.Revises > 0 { // as asked for: once it is made, edits do not fit any more
		files = hashJSON(append([]any{"revises", r.asked.Revises, r.digests.requested}, r.asked.identity()...))
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
	if m.Stale != 0 {
		stale, err := e.closedStale(ctx, m, pr)
		if err != nil || stale {
			return stale, err
		}
	}
	return e.history.Undone(ctx, m.Request)
}

// closedStale reports whether we closed the pull request because nobody had acted on it, by its mark and by the record:
// a person may have reopened and closed it since.
func (e *evidence) closedStale(ctx context.Context, m mark, pr gitprovider.PullRequest) (bool, error) {
	repo := e.snapshot.Repo
	key := record.PullKey{Provider: e.resolution.Provider.Name(), Owner: repo.Owner, Repo: repo.Name, Number: pr.Number}
	r, found, err := e.history.FindPull(ctx, key)
	if err != nil || !found || !m.closedStale(r) {
		return false, err
	}
	return r.Open() || r.ExpiredAs(pr.ClosedAt), nil
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
	return quoteRemark(last, last.Lines)
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
func (e *evidence) parent() string { return e.comparedSnapshot().BaseCommit }

// sameChange finds the oldest one, since a younger one may be about to be withdrawn by its process. It is recognised by
// the proposals of the record, by its mark, and, for one that neither knows (the state folder was lost), by the
// contents of its branch.
func (e *evidence) sameChange(ctx context.Context, r *createRequest) (*sameChange, error) {
	digest := e.digest(r)
	proposals, err := e.history.ByDigest(ctx, digest)
	if err != nil {
		return nil, err
	}
	proposals = slices.DeleteFunc(proposals, func(p record.Proposal) bool { return p.ID == r.id })
	var left *record.Proposal
	if at := slices.IndexFunc(proposals, e.settler.abandoned); at >= 0 {
		left = &proposals[at]
	}
	open := slices.Clone(e.snapshot.Open)
	slices.SortStableFunc(open, func(a, b gitprovider.PullRequest) int { return a.Number - b.Number })
	for _, pr := range open {
		if pr.Base != e.snapshot.Base {
			continue
		}
		for _, p := range proposals {
			its, err := e.became(p, pr)
			if err != nil {
				return nil, err
			}
			if its {
				if e.settler.abandoned(p) {
					left = &p
				}
				return &sameChange{pr: pr, left: left}, nil
			}
		}
		holds, err := e.holdsChange(ctx, r, pr, digest)
		if err != nil {
			return nil, err
		}
		if holds {
			return &sameChange{pr: pr, left: left}, nil
		}
	}
	return nil, nil
}

// became reports whether a pull request is the one that the proposal became, or that it has opened and not recorded
// yet.
func (e *evidence) became(p record.Proposal, pr gitprovider.PullRequest) (bool, error) {
	switch {
	case pr.Branch != p.Branch:
		return false, nil
	case p.State == record.StateOpened:
		return p.PRNumber == 0 || p.PRNumber == pr.Number, nil
	}
	return e.settler.owns(p, pr)
}

// holdsChange reports whether a pull request holds the change, by its mark or by what its branch holds.
func (e *evidence) holdsChange(ctx context.Context, r *createRequest, pr gitprovider.PullRequest, digest string) (bool,
	error) {
	if e.marks[pr.Number].Digest == digest {
		return true, nil
	}
	if len(pr.Paths) != r.changes.Len() || len(r.overlap(pr.Paths)) != r.changes.Len() {
		return false, nil
	}
	holds, err := branchHolds(ctx, e.resolution.Provider, e.snapshot.Repo, pr.Branch, r.changes.Changes())
	if fault.CodeOf(err) == fault.NotFound { // its branch was removed a moment ago
		return false, nil
	}
	return holds, err
}

// sameTexts lists those files of a request whose text a pull request of ours brings, under whatever name: by its mark,
// or, for one that was opened before marks had that, by its record.
func (e *evidence) sameTexts(ctx context.Context, r *createRequest, pr gitprovider.PullRequest) (paths []string,
	err error) {
	m := e.marks[pr.Number]
	if m.Contents == "" && m.Digest != "" {
		proposals, err := e.history.ByDigest(ctx, m.Digest)
		if err != nil {
			return nil, err
		}
		for _, p := range proposals {
			for _, f := range p.Files {
				if print := f.Fingerprint(); print != "" && p.Branch == pr.Branch {
					m.Contents += print[:markDigits]
				}
			}
		}
	}
	for _, c := range r.changes.Changes() {
		if m.holdsText(fingerprint(c)) {
			paths = append(paths, c.Path.String())
		}
	}
	return paths, nil
}

// sameRevision returns the pull request if its head is this very revision, by the records or, if those are lost, by its
// mark.
func (e *evidence) sameRevision(ctx context.Context, r *createRequest, pr gitprovider.PullRequest) (*sameChange,
	error) {
	digest := e.digest(r)
	if m := e.marks[pr.Number]; m.Revision > 0 && m.Digest == digest {
		return &sameChange{pr: pr}, nil
	}
	proposals, err := e.history.ByDigest(ctx, digest)
	for _, p := range proposals {
		if p.Revises == pr.Number && p.Commit != "" && p.Commit == pr.HeadCommit && p.ID != r.id {
			return &sameChange{pr: pr}, nil
		}
	}
	return nil, err
}
