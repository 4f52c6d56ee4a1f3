package prflow

import (
	"context"
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
	// a look after an ambiguous failure has shown that the write had no effect, and will have none
	noEffect bool
}

func newWriter(c *creation) *writer {
	return &writer{
		creation: c, service: c.service, settler: c.evidence.settler,
		provider: c.evidence.resolution.Provider, repo: c.evidence.snapshot.Repo,
	}
}

// complete ends a creation whose pull request is open. Whether somebody else has opened one meanwhile is looked up
// while the labels are set.
func (w *writer) complete(ctx context.Context, pr gitprovider.PullRequest) (CreateResult, error) {
	c := w.creation
	var older []gitprovider.PullRequest
	var notLooked error
	var both sync.WaitGroup
	both.Go(func() {
		defer caught(c.log, func() { older, notLooked = nil, fault.New(fault.Internal, "internal error") })
		older, notLooked = w.olderPulls(ctx, pr)
	})
	c.warnings = append(c.warnings, c.setup().complete(ctx, pr)...)
	both.Wait()
	w.service.step("labelled")
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
	result := w.finish(ctx, pr)
	w.service.step("recorded")
	return result, nil
}

// finish records the pull request. It exists whatever the store says, so a failure to record is a warning; the
// reservation that remains lets the next request on these files settle it. So it does if the pull request may be a
// second one.
func (w *writer) finish(ctx context.Context, pr gitprovider.PullRequest) CreateResult {
	return w.finishAs(ctx, record.OutcomeOpened, record.EventOpened, pr)
}

// finishAs is finish with the outcome and the event to notify people of.
func (w *writer) finishAs(ctx context.Context, outcome record.Outcome, event record.Event,
	pr gitprovider.PullRequest) CreateResult {
	c := w.creation
	row := c.row(outcome, nil)
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
		c.warnings = append(c.warnings, "the pull request is open but could not be recorded yet: "+c.log.shown(err))
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
		Lines: c.evidence.lines, Warnings: c.allWarnings(), Revised: c.request.asked.Revises > 0,
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
