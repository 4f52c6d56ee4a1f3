package prflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// writer makes a draft that has passed the gates into a pull request: reserve, branch and commit, pull request, labels,
// record.
type writer struct {
	creation *creation
	service  *Service
	settler  *settler
	provider gitprovider.Provider
	repo     gitprovider.RepoRef

	tookOver bool // the branch was named by an earlier proposal of ours, whose place this one has taken
	// withdrawUnsettled says that the pull request is open, and that it is not known whether it must be withdrawn, or was.
	withdrawUnsettled bool
	unfinished        atomic.Bool // the commit of a revision is made, and its text or its answer is to be seen to later
	vanished          bool        // a branch of the name was in the way, and then gone
	// a look after an ambiguous failure has shown that the write had no effect, and will have none
	noEffect bool
}

func newWriter(c *creation) *writer {
	return &writer{
		creation: c, service: c.service, settler: c.evidence.settler,
		provider: c.evidence.resolution.Provider, repo: c.evidence.snapshot.Repo,
	}
}

// finishCreation ends a creation whose pull request is open. Whether somebody else has opened one meanwhile is looked
// up while the labels are set.
func (w *writer) finishCreation(ctx context.Context, pr gitprovider.PullRequest) (CreateResult, error) {
	c := w.creation
	var older []gitprovider.PullRequest
	var notLooked error
	var both sync.WaitGroup
	both.Go(func() {
		defer caught(c.log, func() { older, notLooked = nil, fault.New(fault.Internal, "internal error") })
		older, notLooked = w.olderPulls(ctx, pr)
	})
	c.warnings = append(c.warnings, c.setup().setUpPull(ctx, pr)...)
	both.Wait()
	w.service.reachStep("labelled")
	if notLooked != nil {
		w.notLookedFor(pr, notLooked)
	}
	if len(older) > 0 {
		same, err := w.withdrawNewer(ctx, pr, older)
		switch {
		case err != nil:
			return CreateResult{}, err
		case same != nil:
			return c.reuse(ctx, *same)
		}
	}
	result := w.recordOpened(ctx, pr)
	w.service.reachStep("recorded")
	return result, nil
}

// recordOpened records the pull request. It exists whatever the store says, so a failure to record is a warning; the
// reservation that remains lets the next request on these files settle it. So it does if the pull request may be a
// second one.
func (w *writer) recordOpened(ctx context.Context, pr gitprovider.PullRequest) CreateResult {
	return w.finishAs(ctx, record.OutcomeOpened, record.EventOpened, pr)
}

// finishAs is finish with the outcome and the event to notify people of.
func (w *writer) finishAs(ctx context.Context, outcome record.Outcome, event record.Event,
	pr gitprovider.PullRequest) CreateResult {
	c := w.creation
	row := c.auditRow(outcome, nil)
	row.PRNumber, row.PRURL = pr.Number, pr.URL
	row.Message = saidPosted(c.draft.posted, c.draft.answers)
	to := record.Progress{State: record.StateOpened, Branch: c.draft.branch, Commit: w.creation.commit,
		PRNumber: pr.Number, PRURL: pr.URL}
	notices := w.service.notices(event, row)
	w.creation.reserved = false
	var err error
	if w.withdrawUnsettled || w.unfinished.Load() {
		err = w.service.Ledger.Record(ctx, row, nil, notices...)
		w.creation.leaveUnsettled(ctx)
	} else if err = w.service.Ledger.Finish(ctx, c.request.id, to, row, notices...); fault.CodeOf(err) == fault.Conflict {
		err = w.service.Ledger.Record(ctx, row, nil) // settled by another process, which took this one for dead
	}
	c.recorded = err == nil
	if err != nil {
		c.log.error("pull request not recorded", err, "pr", pr.Number)
		c.warnings = append(c.warnings, "the pull request is open but could not be recorded yet: "+c.log.redactedMessage(err))
	}
	return c.result(pr)
}

// abandon ends a reserved proposal that failed. After a definite failure the branch is undone if there is one, and the
// attempt is recorded. After an ambiguous one nothing is undone, since what was sent may still arrive: the proposal
// stays unsettled and keeps its files, and the answer says how it is settled.
func (w *writer) abandon(ctx context.Context, failure error) error {
	e := fault.From(failure)
	if !e.Code.Ambiguous() || w.noEffect {
		if w.creation.commit == "" || w.removeBranch(ctx) {
			return e // the record of the attempt ends the proposal
		}
	} else {
		e = notKnown(e)
	}
	w.creation.leaveUnsettled(ctx)
	return e
}

// giveUp ends a reserved proposal that must not be written. What it has taken the place of may have left something,
// which is looked for later.
func giveUp(ctx context.Context, w *writer, why error) error {
	if w.tookOver {
		w.creation.leaveUnsettled(ctx)
	}
	return why
}

// removeBranch removes the branch if its tip is still ours. It reports whether nothing of it remains.
func (w *writer) removeBranch(ctx context.Context) bool {
	err := w.creation.advance(ctx, record.Progress{State: record.StateCommitted, Undone: true})
	if err == nil {
		err = w.provider.DeleteBranch(ctx, w.repo, w.creation.draft.branch, w.creation.commit)
	}
	if err == nil || slices.Contains([]fault.Code{fault.Conflict, fault.NotFound}, fault.CodeOf(err)) {
		return true
	}
	w.creation.log.error("branch not undone", err, "branch", w.creation.draft.branch)
	return false
}

// retryUnsettled is the retry delay reported after a failure with an unknown outcome.
const retryUnsettled = 10 * time.Second

// notKnown tells a caller what to do after a failure that leaves open what the provider has done.
func notKnown(e *fault.Error) *fault.Error {
	out := *e
	out.Message += ". What it has done is not known yet, and nothing was undone: make the identical call again, which is safe " +
		"and settles this; it makes no second pull request"
	if out.RetryAfter == 0 {
		out.RetryAfter = retryUnsettled
	}
	return &out
}

// result returns the answer with a pull request.
func (c *creation) result(pr gitprovider.PullRequest) CreateResult {
	r := CreateResult{
		Number: pr.Number, URL: pr.URL, Branch: pr.Branch, Commit: pr.HeadCommit, Files: c.request.paths(),
		Lines: c.evidence.lines, Facts: factLines(c.evidence.facts), Warnings: c.allWarnings(),
		Revised: c.request.asked.Revises > 0,
		Replies: c.draft.posted,
	}
	if c.commit != "" {
		r.Commit = c.commit
	}
	return r
}

// allWarnings returns the warnings of the gates, of the rewritten texts, and of later steps.
func (c *creation) allWarnings() []string {
	return slices.Concat(c.verdicts.warnings(), c.request.text.warnings,
		c.verdicts[record.GateDuplicate].notes, c.warnings)
}

// writeProposal ignores the caller's cancellation from the reservation on: a half-done write is worse than a complete
// one or none.
func (w *writer) writeProposal(ctx context.Context) (CreateResult, error) {
	c := w.creation
	c.call.Progress("reserving the files")
	if err := w.avoidRemoved(ctx); err != nil {
		return CreateResult{}, err
	}
	same, err := w.reserve(ctx)
	switch {
	case err != nil:
		return CreateResult{}, err
	case same != nil:
		return c.reuse(ctx, *same)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()

	w.creation.reserved = true
	w.service.reachStep("reserved")
	if err := c.admitted(ctx); err != nil {
		return CreateResult{}, giveUp(ctx, w, err)
	}
	if c.evidence.revision != nil {
		return addRevision(ctx, w)
	}
	c.writes("writing the branch", w.provider)
	same, err = w.commitBranch(ctx)
	switch {
	case err != nil:
		return CreateResult{}, w.abandon(ctx, err)
	case same != nil: // of somebody whose records are not ours
		return c.reuse(ctx, *same)
	}
	c.writes("opening the pull request", w.provider)
	pr, err := w.openPullRequest(ctx)
	if err != nil {
		return CreateResult{}, w.abandon(ctx, err)
	}
	w.service.reachStep("opened")
	return w.finishCreation(ctx, pr)
}

// openPullRequest opens the pull request. After an ambiguous failure it is looked whether there is one.
func (w *writer) openPullRequest(ctx context.Context) (gitprovider.PullRequest, error) {
	draft, policy := w.creation.draft, w.creation.rules.Policy
	pr, failure := w.provider.OpenPullRequest(ctx, gitprovider.PullRequestSpec{
		Repo: w.repo, Base: w.creation.evidence.snapshot.Base, Head: draft.branch,
		Title: draft.title, Body: draft.body, Labels: policy.Labels, Draft: policy.Pulls.Draft,
	})
	if !fault.CodeOf(failure).Ambiguous() {
		return pr, failure
	}
	found, err := w.provider.FindByHead(ctx, w.repo, draft.branch)
	if err == nil && found != nil && found.State == gitprovider.StateOpen {
		return *found, nil
	}
	w.noEffect = err == nil && w.provider.Lateness() == 0
	return pr, failure
}

const (
	// waitForWinner bounds how long a caller waits for another one's proposal on the same files.
	waitForWinner = 20 * time.Second
	pollInterval  = 50 * time.Millisecond
)

// reserve takes the files, or finds who has them: an open pull request with the very same change is returned, another
// one is a refusal; what a dead process left is settled first, or taken over if it is the same change.
func (w *writer) reserve(ctx context.Context) (*sameChange, error) {
	clock := w.service.Clock
	deadline := clock.Now().Add(waitForWinner)
	for {
		taken, err := w.reserveWithinCaps(ctx)
		switch {
		case err != nil || taken == nil:
			return nil, err
		case taken.State == record.StateOpened:
			return w.takenBy(*taken)
		case w.settler.abandoned(*taken):
			if same, done, err := w.replace(ctx, *taken); err != nil || same != nil || done {
				return same, err
			}
			continue
		case clock.Now().After(deadline):
			e := fault.New(fault.LimitReached,
				"another proposal for these files is being written (request %s); try again shortly", taken.ID)
			e.RetryAfter = waitForWinner
			return nil, e
		}
		clock.Sleep(ctx, pollInterval)
		if ctx.Err() != nil {
			return nil, fault.From(ctx.Err())
		}
	}
}

// reserveWithinCaps reserves if the gate of the caps passes. What processes that ended have left in this repository is
// settled before it counts against a caller.
func (w *writer) reserveWithinCaps(ctx context.Context) (taken *record.Proposal, err error) {
	c := w.creation
	for _, last := range []bool{false, true} {
		claim := c.evidence.claim()
		claim.Admit = func(u record.Usage) error {
			c.evidence.usage = u
			_, err := c.runGates(ctx, phaseReserve)
			return err
		}
		delete(c.verdicts, record.GateCaps)
		taken, err = w.service.Ledger.Reserve(ctx, c.proposal(record.StateReserved), claim)
		full := c.verdicts.denied(record.GateCaps) && c.evidence.usage.Pending > 0
		if last || !full || !w.settler.settleIn(ctx, w.provider.Name(), w.repo) {
			break
		}
	}
	return taken, err
}

// takenBy answers a caller whose files were taken by a proposal that was opened a moment ago.
func (w *writer) takenBy(winner record.Proposal) (*sameChange, error) {
	c := w.creation
	if winner.Digest == c.draft.digest {
		return &sameChange{pr: gitprovider.PullRequest{
			Number: winner.PRNumber, URL: winner.PRURL, Branch: winner.Branch, HeadCommit: winner.Commit,
			Base: winner.Base, State: gitprovider.StateOpen,
		}}, nil
	}
	if rev := c.evidence.revision; rev != nil && winner.PRNumber == rev.pr.Number {
		return nil, movedMeanwhile(winner.PRNumber)
	}
	return nil, c.denyDuplicate(winner.PRNumber, winner.PRURL, winner.Title, pathsOf(winner))
}

// replace handles an abandoned proposal that still holds the files. If it is the same change, this creation takes it
// over: it continues under the branch's name, so that late writes of the former process end up there and do not create
// a second one. Another change is settled first. done says that the files are reserved for this creation. If there is
// neither a pull request nor an error and done is false, the caller has to try again.
func (w *writer) replace(ctx context.Context, left record.Proposal) (same *sameChange, done bool, err error) {
	provider, err := w.settler.providerOf(left)
	if err != nil {
		return nil, false, err
	}
	if left.Digest == w.creation.draft.digest && provider.Name() == w.provider.Name() {
		w.service.Clock.Sleep(ctx, settleGrace)
		made, err := w.settler.isCompleted(ctx, provider, left)
		if err != nil {
			return nil, false, err
		}
		if !made {
			done, err := w.takeOver(ctx, left)
			return nil, done, err
		}
	}
	if err := w.settler.settleProposal(ctx, left); err != nil {
		return nil, false, err
	}
	if err := w.avoidRemoved(ctx); err != nil {
		return nil, false, err
	}
	same, err = w.creation.judgePullsAgain(ctx)
	return same, false, err
}

// isCompleted reports whether what a proposal that was left should have become is there, or was undone.
func (s *settler) isCompleted(ctx context.Context, p gitprovider.Provider, left record.Proposal) (bool, error) {
	if left.Revises > 0 && len(left.Files) == 0 { // what it has begun to post is not ours to post again
		return left.PRNumber > 0, nil
	}
	if left.Revises > 0 {
		commit, err := s.revisionOf(ctx, p, left)
		return commit != "", err
	}
	pr, undone, err := s.findPull(ctx, p, left)
	return pr != nil || undone, err
}

// takeOver ends a proposal of the same change and reserves its files for this one, at once.
func (w *writer) takeOver(ctx context.Context, left record.Proposal) (done bool, err error) {
	c := w.creation
	own := c.draft.branch
	if err := w.rename(left.Branch); err != nil {
		return false, err
	}
	row := w.settler.settledRow(left, record.OutcomeFailed, record.Progress{},
		fmt.Sprintf("taken over by request %s, which proposes the same", c.request.id))
	done, err = w.service.Ledger.Supersede(ctx, left, c.proposal(record.StateReserved), row)
	if err != nil || !done { // somebody else has settled it: its name is not ours to go on with
		return false, errors.Join(err, w.rename(own))
	}
	w.tookOver = true
	c.verdicts[record.GateCaps] = ruling{detail: "in the place of request " + left.ID + ", which counts no more"}
	return true, nil
}

// avoidRemoved takes another name than those whose branches we have begun to remove a short time ago: the removal may
// have been sent more than once, and arrive late.
func (w *writer) avoidRemoved(ctx context.Context) error {
	lateness := w.provider.Lateness()
	if lateness == 0 || w.creation.evidence.revision != nil {
		return nil
	}
	since := w.service.Clock.Now().Add(-lateness)
	removed, err := w.service.History.UndoneBranches(ctx, w.provider.Name(), w.repo.Owner, w.repo.Name, since)
	if err != nil || !slices.Contains(removed, w.creation.draft.branch) {
		return err
	}
	for _, name := range branchNames(&w.creation.request) {
		if !slices.Contains(removed, name) {
			return w.rename(name)
		}
	}
	return nil
}
