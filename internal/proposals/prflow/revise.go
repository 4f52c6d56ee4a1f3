package prflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// revisionWriter makes a draft that has passed the gates into one more commit.
type revisionWriter struct {
	*writer
	reviser gitprovider.Reviser
}

// addRevision makes one more commit in the place of a pull request.
func addRevision(ctx context.Context, w *writer) (CreateResult, error) {
	reviser, can := w.provider.(gitprovider.Reviser)
	if !can {
		return CreateResult{}, fault.New(fault.ProviderDisabled, "the provider %s cannot add to a pull request",
			w.provider.Name())
	}
	if w.creation.request.asked.repliesOnly() {
		return revisionWriter{w, reviser}.answerReview(ctx)
	}
	return revisionWriter{w, reviser}.revise(ctx)
}

// revise adds the commit to the pull request, sets title and body, and answers the review. Only a failed commit is an
// error: a title or a comment that could not be written is a warning, and is retried later if that may help. The
// forge's answer to the new title tells whether the pull request was still open at the time of the commit.
func (w revisionWriter) revise(ctx context.Context) (CreateResult, error) {
	c := w.creation
	c.writes("adding the commit", w.provider)
	err := w.appendCommit(ctx)
	if err != nil {
		return CreateResult{}, w.abandonRevision(ctx, err)
	}
	c.writes("answering the review", w.provider)
	pr := c.evidence.revision.pr
	err = w.creation.advance(ctx, record.Progress{State: record.StateCommitted, Commit: w.creation.commit,
		PRNumber: pr.Number, PRURL: pr.URL})
	if err != nil {
		return CreateResult{}, w.abandonRevision(ctx, err)
	}
	w.service.reachStep("answering")
	switch ended, err := w.finishText(ctx, pr); {
	case err != nil:
		return CreateResult{}, err // the record of the attempt ends the proposal
	case !ended:
		setup := c.setup()
		c.warnings = append(c.warnings, sideBySide(c.log,
			func() string { return w.postAnswers(ctx, pr) },
			func() string { return setup.label(ctx, pr) },
		)...)
	}
	w.service.reachStep("answered")
	pr.HeadCommit = w.creation.commit
	result := w.finishAs(ctx, record.OutcomeRevised, record.EventRevised, pr)
	w.service.reachStep("recorded")
	return result, nil
}

// appendCommit sets the commit when it is certain that the branch has our commit. After an ambiguous failure, and after
// a conflict, it looks: another process that makes the same revision, or an earlier one that was taken over, may have
// made it.
func (w revisionWriter) appendCommit(ctx context.Context) error {
	message, err := w.commitMessage()
	if err != nil {
		return err
	}
	c := w.creation
	head := c.evidence.revision.head
	made, failure := w.reviser.Append(ctx, gitprovider.CommitRequest{
		Snapshot: head, Branch: c.draft.branch, Changes: c.request.changes, Message: message, Time: c.request.started,
	})
	if failure == nil {
		if made.Parent != head.BaseCommit {
			c.warnings = append(c.warnings, "somebody has pushed to "+c.draft.branch+
				" at the same moment; the commit follows theirs")
		}
		return w.committed(ctx, made.ID)
	}
	code := fault.CodeOf(failure)
	if code == fault.NotFound { // the branch is gone
		if state := stateNow(ctx, w.provider, w.repo, c.evidence.revision.pr); hasEnded(state) {
			return endedBefore(c.evidence.revision.pr.Number, state)
		}
	}
	if !code.Ambiguous() && code != fault.Conflict {
		return failure
	}
	tip, err := w.provider.BranchTip(ctx, w.repo, c.draft.branch)
	if err != nil {
		return failure
	}
	if tip != "" && tip != head.BaseCommit {
		kind, err := w.classifyTip(ctx, tip)
		switch {
		case err != nil:
			return failure
		case kind == branchOurs:
			return w.committed(ctx, tip)
		case code == fault.Conflict && !w.tookOver:
			return movedMeanwhile(c.evidence.revision.pr.Number)
		}
	}
	w.noEffect = w.provider.Lateness() == 0
	return failure
}

// abandonRevision is abandon for a revision: the branch is the pull request's, and is never removed.
func (w revisionWriter) abandonRevision(ctx context.Context, failure error) error {
	e := fault.From(failure)
	switch {
	case w.creation.commit == "" && (!e.Code.Ambiguous() || w.noEffect):
		return e // the record of the attempt ends the proposal
	case e.Code.Ambiguous():
		e = notKnown(e)
	}
	w.creation.leaveUnsettled(ctx)
	return e
}

// finishText sets title and body. ended says that the pull request was merged meanwhile, with the revision; conflict if
// it was without, or was closed.
func (w revisionWriter) finishText(ctx context.Context, pr gitprovider.PullRequest) (ended bool, err error) {
	c := w.creation
	state, warning := w.setText(ctx, pr)
	if !hasEnded(state) {
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
		return false, nil
	}
	w.unfinished.Store(false)
	got, err := tookIn(ctx, w.provider, w.repo, pr.Base, state, c.request.changes.Changes())
	if err != nil {
		c.log.warn("not seen whether a revision was merged", err, "pr", pr.Number)
	}
	if got {
		c.warnings = append(c.warnings, fmt.Sprintf("#%d was merged a moment ago, with this revision", pr.Number))
		return true, nil
	}
	return false, missed(pr, state, w.creation.commit)
}

// setText gives the pull request the title and the body with the new mark, and tells its state after that; "" if that
// is not known. A title that is a draft's stays one.
func (w revisionWriter) setText(ctx context.Context, pr gitprovider.PullRequest) (state gitprovider.State,
	warning string) {
	editor, can := w.provider.(gitprovider.Editor)
	if !can {
		return "", ""
	}
	draft := w.creation.draft
	state, err := editor.SetText(ctx, w.repo, pr.Number, revisedTitle(pr.Title, draft.title), draft.body)
	if err == nil {
		return state, ""
	}
	w.retryLater(err)
	w.creation.log.warn("text not set", err, "pr", pr.Number)
	return stateNow(ctx, w.provider, w.repo, pr), textNotSet + w.creation.log.redactedMessage(err)
}

// textNotSet begins the warning about a title and a body that were refused.
const textNotSet = "title and body could not be set: "

// revisedTitle returns the title that a pull request gets; "" if it has it.
func revisedTitle(has, title string) string {
	if strings.HasPrefix(has, draftTitle) {
		title = draftTitle + strings.TrimPrefix(title, draftTitle)
	}
	if has == title {
		return ""
	}
	return title
}

// retryLater notes that something is left to be done later, if a failure may pass.
func (w revisionWriter) retryLater(err error) {
	if mayPass(err) {
		w.unfinished.Store(true)
	}
}

// answerReview answers the review of a pull request without a commit. The remarks that were read go into the mark
// first: then they are not answered a second time, and the record has the answers that are not posted yet.
func (w revisionWriter) answerReview(ctx context.Context) (CreateResult, error) {
	c := w.creation
	pr := c.evidence.revision.pr
	c.writes("answering the review", w.provider)
	w.creation.commit = c.evidence.parent()
	err := w.creation.advance(ctx, record.Progress{State: record.StateCommitted, Commit: w.creation.commit,
		PRNumber: pr.Number, PRURL: pr.URL})
	if err != nil {
		return CreateResult{}, err // nothing was sent
	}
	w.service.reachStep("answering")
	state, warning := w.setText(ctx, pr)
	if hasEnded(state) {
		w.unfinished.Store(false)
		return CreateResult{}, endedBefore(pr.Number, state)
	}
	for _, said := range []string{warning, w.postAnswers(ctx, pr)} {
		if said != "" {
			c.warnings = append(c.warnings, said)
		}
	}
	w.service.reachStep("answered")
	result := w.finishAs(ctx, record.OutcomeRevised, record.EventRevised, pr)
	w.service.reachStep("recorded")
	return result, nil
}

// postAnswers posts the answers to the review. Of an unclear failure it is found out later what is there.
func (w revisionWriter) postAnswers(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	c := w.creation
	a := reviewAnswers{
		provider: w.provider, repo: w.repo, pr: pr, request: c.request.id, requested: c.evidence.revision.standing,
		answers: c.draft.answers,
	}
	if !c.request.asked.repliesOnly() {
		a.commit = w.creation.commit
	}
	left, err := a.post(ctx, a.all())
	c.draft.posted = a.posted(left)
	if err == nil {
		return ""
	}
	w.retryLater(err)
	c.log.warn("review not answered", err, "pr", pr.Number)
	return a.notPosted(left, c.log.redactedMessage(err))
}

// What follows handles pull requests that people merge or close between our look and our commit of a revision. A forge
// accepts the commit all the same: it is then on the branch, but in no open pull request.

func hasEnded(state gitprovider.State) bool {
	return state == gitprovider.StateMerged || state == gitprovider.StateClosed
}

// stateNow returns the state of a pull request; "" if it cannot be seen.
func stateNow(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest) gitprovider.State {
	found, err := p.FindByHead(ctx, repo, pr.Branch)
	if err != nil || found == nil || found.Number != pr.Number {
		return ""
	}
	return found.State
}

// tookIn reports whether a pull request that has ended has brought the changes onto its base branch. How it was merged
// does not matter: by a merge commit, squashed or rebased.
func tookIn(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, base string, state gitprovider.State,
	changes []gitprovider.Change) (
	bool, error) {
	if state != gitprovider.StateMerged {
		return false, nil
	}
	return branchHolds(ctx, p, repo, base, changes)
}

// endedBefore refuses a revision of which nothing was written.
func endedBefore(number int, state gitprovider.State) *fault.Error {
	e := fault.New(fault.Conflict, "#%d was %s since it was read a moment ago; nothing was added to it", number, state)
	e.Next = afterEnd
	return e
}

// missed refuses a revision whose commit came after the end of the pull request.
func missed(pr gitprovider.PullRequest, state gitprovider.State, commit string) *fault.Error {
	e := fault.New(fault.Conflict,
		"#%d was %s while the revision was on its way, and without it: the commit %s is on the branch %s and nowhere "+
			"else, and nothing was commented", pr.Number, state, short(commit), clean(pr.Branch, maxTitle))
	e.Next = afterEnd
	return e
}

// afterEnd advises the caller after a pull request has ended.
const afterEnd = "read it (get_pr_status); what is still missing may be proposed as a change of its own, without revises"
