package prflow

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// This file reads what a request is judged by that adds a commit to an open pull request of ours: the head branch takes
// the place of the base branch, and the gates judge the files that the pull request changes with the new commit.

// revisionReader reads what a creation adds to.
type revisionReader struct{ *creation }

// headLag is the first pause before a pull request is read again whose branch has another commit than it was shown
// with; the second is twice that. Gitea's lists follow a push within 0.7 seconds.
const headLag = 400 * time.Millisecond

// readRevision reads the pull request and its branch. If a commit or an answer arrived meanwhile, it reads them again:
// that may have been the very same revision, or one whose commit the forge does not show yet. query is the query that
// read the base branch.
func (c revisionReader) readRevision(ctx context.Context, query gitprovider.SnapshotQuery) error {
	const tries = 3
	for try := 1; ; try++ {
		unsure, err := c.readOnce(ctx, query)
		if err != nil || !unsure || try == tries {
			return err
		}
		seen, pushed := c.evidence.revision.pr, c.evidence.revision.pushed
		if pushed {
			c.service.Clock.Sleep(ctx, time.Duration(try)*headLag)
		}
		if err := c.evidence.readPullsAgain(ctx, c.closedSince()); err != nil {
			return err
		}
		same := func(pr gitprovider.PullRequest) bool {
			return pr.Number == seen.Number && pr.HeadCommit == seen.HeadCommit
		}
		if pushed || !slices.ContainsFunc(c.evidence.snapshot.Open, same) {
			continue
		}
		if answered, err := c.answeredMeanwhile(ctx, seen.Number); err != nil || !answered {
			return err
		}
	}
}

// answeredMeanwhile reports whether the records know the very same answer by another request. Answers alone leave the
// head where it was, so that it does not tell.
func (c revisionReader) answeredMeanwhile(ctx context.Context, number int) (bool, error) {
	if !c.request.asked.repliesOnly() {
		return false, nil
	}
	proposals, err := c.evidence.history.ByDigest(ctx, c.evidence.digest(&c.request))
	return slices.ContainsFunc(proposals, func(p record.Proposal) bool {
		return p.Revises == number && p.ID != c.request.id && p.State != record.StateFailed
	}), err
}

// readOnce reports whether what was read may be of before and after a push: then the revision is refused for now.
func (c revisionReader) readOnce(ctx context.Context, query gitprovider.SnapshotQuery) (unsure bool, err error) {
	e, rev := &c.evidence, &revision{}
	e.revision = rev
	if err := c.findRevised(ctx, query); err != nil || rev.why != nil {
		return false, err
	}
	if again, err := c.settleSameRevision(ctx); err != nil {
		return false, err
	} else if again {
		if err := e.readPullsAgain(ctx, c.closedSince()); err != nil {
			return false, err
		}
		if err := c.findRevised(ctx, query); err != nil || rev.why != nil {
			return false, err
		}
	}
	rev.mark = e.marks[rev.pr.Number]
	if rev.same, err = e.sameRevision(ctx, &c.request, rev.pr); err != nil || rev.same != nil {
		return false, err
	}
	return c.readHead(ctx)
}

// readHead reads the branch and the discussion side by side. It reports whether they refuse the revision.
func (c revisionReader) readHead(ctx context.Context) (refused bool, err error) {
	e, rev := &c.evidence, c.evidence.revision
	provider, repo := e.resolution.Provider, e.snapshot.Repo
	var head *gitprovider.Snapshot
	var unread, unheard error
	var both sync.WaitGroup
	both.Go(func() {
		defer caught(c.log, func() { unheard = fault.New(fault.Internal, "internal error") })
		rev.standing, unheard = e.revisions(c.rules).loadStanding(ctx, provider, repo, rev.pr)
	})
	query := gitprovider.SnapshotQuery{Repo: repo, Base: rev.pr.Branch, FilesOnly: true, Contents: true,
		Paths: c.pathsOfRevision()}
	head, unread = provider.Snapshot(ctx, query)
	both.Wait()
	switch {
	case unheard != nil:
		return false, unheard
	case unread != nil && rev.why == nil:
		return false, unread
	case rev.why != nil:
		return true, nil
	case head.BaseCommit != rev.pr.HeadCommit:
		rev.pushed = true
		rev.why = notRevisable(rev.pr, "head", "was pushed to a moment ago")
		return true, nil
	}
	rev.head = head
	return false, nil
}

// pathsOfRevision returns the paths of the request in scope, and those of the pull request.
func (c revisionReader) pathsOfRevision() []gitprovider.Path {
	var out []gitprovider.Path
	for _, change := range c.request.inScope(c.rules.Policy.Scope.At(c.rules.Tier)) {
		out = append(out, change.Path)
	}
	for _, p := range c.evidence.revision.pr.Paths {
		if path, err := gitprovider.ParsePath(p); err == nil && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// findRevised finds the pull request among the open ones of ours, and reads its base branch if that is another one.
func (c revisionReader) findRevised(ctx context.Context, query gitprovider.SnapshotQuery) error {
	e, rev, number := &c.evidence, c.evidence.revision, c.request.asked.Revises
	at := func() int {
		return slices.IndexFunc(e.snapshot.Open, func(pr gitprovider.PullRequest) bool { return pr.Number == number })
	}
	i := at()
	if i >= 0 && e.snapshot.Open[i].Base != e.snapshot.Base {
		if c.request.asked.BaseBranch != "" {
			rev.why = &fault.Violation{
				Code: fault.InvalidArgument, Path: "base_branch", Rule: "revises", Suggestion: "leave base_branch out",
				Message: fmt.Sprintf("#%d goes into %s, not into %s", number, quote(e.snapshot.Open[i].Base),
					quote(e.snapshot.Base)),
			}
			return nil
		}
		query.Base = e.snapshot.Open[i].Base
		if err := e.loadSnapshot(ctx, query); err != nil {
			return err
		}
		i = at()
	}
	if i >= 0 {
		rev.pr = e.snapshot.Open[i]
		return nil
	}
	status, err := e.resolution.Provider.Status(ctx, e.snapshot.Repo, number)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		rev.why = notThere(number, e.snapshot.Repo, "has no pull request")
	case err != nil:
		return err
	case status.State != gitprovider.StateOpen:
		rev.why = notRevisable(status.PullRequest, "open", "is "+string(status.State))
		rev.why.Suggestion = "leave revises out to propose a change of its own"
	default:
		rev.why = notThere(number, e.snapshot.Repo, "has no pull request of ours")
	}
	return nil
}

func notThere(number int, repo gitprovider.RepoRef, what string) *fault.Violation {
	return &fault.Violation{
		Code: fault.NotFound, Path: "revises", Rule: "ours",
		Message:    fmt.Sprintf("%s %s with the number %d", repo, what, number),
		Suggestion: "list_prs names those that there are",
	}
}

// settleSameRevision waits for another process that is making the same revision, and settles an abandoned one. again
// says that the head of the pull request may have changed.
func (c revisionReader) settleSameRevision(ctx context.Context) (again bool, err error) {
	if !c.rules.mayWrite() {
		return false, nil
	}
	s, clock := c.evidence.settler, c.service.Clock
	tried := map[string]bool{}
	for deadline := clock.Now().Add(waitForWinner); ; {
		proposals, err := c.service.History.ByDigest(ctx, c.evidence.digest(&c.request))
		if err != nil {
			return again, err
		}
		at := slices.IndexFunc(proposals, func(p record.Proposal) bool {
			return p.Revises > 0 && p.State != record.StateOpened && !tried[p.ID]
		})
		switch {
		case at < 0:
			return again, nil
		case s.abandoned(proposals[at]):
			left := proposals[at]
			tried[left.ID], again = true, true
			if err := s.settleProposal(ctx, left); err != nil { // the identical call may go on in its place
				c.log.warn("the same revision not settled", err, "left", left.ID)
			}
			continue
		case clock.Now().After(deadline):
			return again, nil
		}
		again = true
		clock.Sleep(ctx, pollInterval)
		if ctx.Err() != nil {
			return again, fault.From(ctx.Err())
		}
	}
}

// checkRevisedTree makes of the request's files and of those that the pull request changes already what it changes
// then, which the gates of tier, scope and content judge.
func (r *createRequest) checkRevisedTree(on rules, rev *revision, base gitprovider.Tree) {
	rev.net, rev.also = nil, nil
	asked := map[string]bool{}
	for _, f := range r.asked.fileChanges() {
		asked[f.Path] = true
		entry, exists := base[f.Path]
		switch {
		case f.Action == gitprovider.ActionDelete && !exists,
			f.Action != gitprovider.ActionDelete && exists && entry.ID == gitprovider.BlobID([]byte(f.Content), entry.ID):
			continue // the pull request does not change it any more
		case f.Action != gitprovider.ActionDelete:
			f.Action = map[bool]gitprovider.Action{true: gitprovider.ActionUpdate, false: gitprovider.ActionCreate}[exists]
		}
		rev.net = append(rev.net, f)
	}
	for _, path := range rev.pr.Paths {
		if asked[path] {
			continue
		}
		f := FileRequest{Path: path, Action: string(gitprovider.ActionDelete)}
		if _, exists := rev.head.Tree[path]; exists {
			f.Action = string(gitprovider.ActionUpdate)
			if canonical, err := gitprovider.ParsePath(path); err == nil {
				if content, known := rev.head.Contents[canonical]; known {
					text := string(content)
					f.Content = &text
				}
			}
		}
		rev.also = append(rev.also, f)
	}
	rev.net = append(rev.net, (&CreateRequest{Files: rev.also}).fileChanges()...)
	slices.SortFunc(rev.net, func(a, b gitprovider.FileChange) int { return strings.Compare(a.Path, b.Path) })
	limits := gitprovider.Rules{Tier: on.Tier, Limits: on.Policy.Tiers, Scope: on.Policy.Scope}
	if len(rev.net) > 0 {
		_, excluded := gitprovider.NewChangeSet(limits, rev.net)
		r.excluded = distinct(append(excluded, r.excluded...))
	}
	r.also = rev.also
}

// distinct leaves out violations of a rule at a path that was named before.
func distinct(violations []fault.Violation) (out []fault.Violation) {
	for _, v := range violations {
		if !slices.ContainsFunc(out, func(o fault.Violation) bool { return o.Rule == v.Rule && o.Path == v.Path }) {
			out = append(out, v)
		}
	}
	return out
}

// What follows tells which remarks of people are not answered yet. It compares with the remarks that had been read when
// a revision was made, which its mark lists, and not with the clock: a remark that was made while the revision was on
// its way may be older than our answer, a server dates a review by the time at which its author began to write it, and
// times are in seconds.

const (
	// maxHeard bounds the remarks that a mark names, the newest: a body has little room.
	maxHeard = 80
	// heardDigits is the number of hex digits of a remark's digest in a mark.
	heardDigits = 4
)

// heardKey tells a remark from the others of its pull request.
func heardKey(r gitprovider.Remark) string {
	id := r.ID
	if id == "" {
		id = fmt.Sprintf("%s %d %s", r.Author, r.At.Unix(), r.Body)
	}
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:heardDigits]
}

// heardOf encodes for a mark which remarks had been read: a time in seconds, up to which all had, and the keys of the
// later ones. remarks are in the order of their times.
func heardOf(remarks []gitprovider.Remark) string {
	left := max(0, len(remarks)-maxHeard)
	var upTo int64
	if left > 0 {
		upTo = remarks[left-1].At.Unix()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", upTo)
	for _, r := range remarks[left:] {
		b.WriteString(heardKey(r))
	}
	return b.String()
}

// wasRead reports whether a mark says that a remark had been read.
func (m mark) wasRead(r gitprovider.Remark) bool {
	seconds, keys, _ := strings.Cut(m.Heard, ":")
	upTo, err := strconv.ParseInt(seconds, 10, 64)
	if err == nil && upTo > 0 && r.At.Unix() <= upTo {
		return true
	}
	for at := 0; at+heardDigits <= len(keys); at += heardDigits {
		if keys[at:at+heardDigits] == heardKey(r) {
			return true
		}
	}
	return false
}

// lastRevision describes the last revision of a pull request, as far as it is known.
type lastRevision struct {
	mark  mark      // of the revision with the highest number
	count int       // of the revisions in the records
	made  time.Time // the last one, by the records; zero if they have none
}

// lastHeard finds the mark of the last revision: in the pull request's body, or, if that could not be written, in the
// records.
func lastHeard(marks markReader, inBody mark, pr gitprovider.PullRequest, made []record.Proposal) lastRevision {
	out := lastRevision{mark: inBody, count: countRevisions(made)}
	for _, p := range made {
		if p.Revises == 0 {
			continue
		}
		out.made = p.CreatedAt
		if m, isTrue := marks.firstSigned(gitprovider.PullRequest{Body: p.Body, Branch: pr.Branch,
			RepoID: pr.RepoID}); isTrue &&
			m.Revision >= out.mark.Revision && p.Commit != "" {
			out.mark = m
		}
	}
	return out
}

// unanswered returns the remarks that ask for a revision, oldest first: by somebody who may write, no approval, with
// words that are not settled, and not heard when the last revision was made. Where no mark tells, as of revisions of
// older programs, our answer's time does, and what was said in its very second counts as unanswered.
func (l lastRevision) unanswered(pr gitprovider.PullRequest, remarks []gitprovider.Remark) (out []gitprovider.Remark) {
	var since time.Time
	answers := 0
	for _, r := range remarks {
		if isOurAnswer(pr, r) {
			since = r.At
			if answersReview(r) {
				answers++
			}
		}
	}
	if answers < l.count && l.made.After(since) { // an answer did not come to be: then our own clock counts
		since = l.made
	}
	revisions := max(answers, l.count)
	told := l.mark.Heard != "" && l.mark.Revision >= revisions
	for _, r := range remarks {
		heard := revisions > 0 && r.At.Before(since)
		if told {
			heard = l.mark.wasRead(r)
		}
		if r.MayWrite && !r.IsAnswer() && !heard && asksForMore(r) {
			out = append(out, r)
		}
	}
	return out
}

// asksForMore leaves out approvals, and remarks that say nothing beside conversations on lines that were settled.
func asksForMore(r gitprovider.Remark) bool {
	switch r.State {
	case gitprovider.ReviewApproved, gitprovider.ReviewDismissed:
		return false
	case gitprovider.ReviewChangesRequested:
		return true
	}
	open := func(c gitprovider.LineComment) bool { return !c.Resolved }
	onLinesAlone := len(r.Lines) > 0 && (r.Body == "" || r.State == "")
	return !onLinesAlone || slices.ContainsFunc(r.Lines, open)
}

// answersReview reports whether one of our answers is to a review as a whole, of which a revision has at most one.
func answersReview(r gitprovider.Remark) bool {
	first, _, _ := strings.Cut(r.Body, "\n")
	return strings.TrimSpace(first) != "" && !strings.Contains(first, commentsIn)
}

func countRevisions(made []record.Proposal) (n int) {
	for _, p := range made {
		if p.Revises > 0 {
			n++
		}
	}
	return n
}

// isOurAnswer reports whether a remark is an answer of ours: that of somebody who may not write only looks like one.
func isOurAnswer(pr gitprovider.PullRequest, r gitprovider.Remark) bool {
	author := func(name string) string { return strings.ToLower(strings.TrimSuffix(name, "[bot]")) }
	return r.IsAnswer() && (r.MayWrite || author(r.Author) == author(pr.Author))
}
