package prflow

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// reply answers the review of a pull request without a commit. What was heard goes into the mark first: then nobody
// starts to answer it again, and what is not posted yet the record has.
func (w revisionWriter) reply(ctx context.Context) (CreateResult, error) {
	c := w.creation
	pr := c.evidence.revision.pr
	c.writes("answering the review", w.provider)
	w.creation.commit = c.evidence.parent()
	err := w.creation.advance(ctx, record.Progress{State: record.StateCommitted, Commit: w.creation.commit,
		PRNumber: pr.Number, PRURL: pr.URL})
	if err != nil {
		return CreateResult{}, err // nothing was sent
	}
	w.service.step("answering")
	state, warning := w.setText(ctx, pr)
	if hasEnded(state) {
		w.unfinished.Store(false)
		return CreateResult{}, endedBefore(pr.Number, state)
	}
	for _, said := range []string{warning, w.answer(ctx, pr)} {
		if said != "" {
			c.warnings = append(c.warnings, said)
		}
	}
	w.service.step("answered")
	result := w.finishAs(ctx, record.OutcomeRevised, record.EventRevised, pr)
	w.service.step("recorded")
	return result, nil
}

// answer posts the answers to the review. Of an unclear failure it is found out later what is there.
func (w revisionWriter) answer(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	c := w.creation
	a := reviewAnswers{
		provider: w.provider, repo: w.repo, pr: pr, request: c.request.id, asked: c.evidence.revision.standing,
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
	w.again(err)
	c.log.warn("review not answered", err, "pr", pr.Number)
	return a.notPosted(left, c.log.shown(err))
}

// mendReplies posts the answers of a revision that was made, where the forge had refused them; it warns again if it
// does so again.
func (c replying) mendReplies(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	if c.evidence.revision == nil || !c.request.asked.answers() || pr.CreatedAt.IsZero() { // of the last nothing was read
		return ""
	}
	made, err := c.madeRevision(ctx, pr)
	if made == nil {
		if err != nil {
			c.log.warn("the same revision not looked for", err, "pr", pr.Number)
		}
		return ""
	}
	a := answersOf(c.evidence.resolution.Provider, *made, pr)
	left, err := a.look(ctx)
	if err == nil && !left.none() {
		left, err = a.post(ctx, left)
	}
	c.draft.posted = a.posted(left)
	if err == nil {
		return ""
	}
	c.log.warn("review not answered", err, "pr", pr.Number)
	return a.notPosted(left, c.log.shown(err))
}

// endReplies ends a proposal without a commit that its process has left: if it has begun to post, the rest is posted.
func (s *settler) endReplies(ctx context.Context, p gitprovider.Provider, left record.Proposal) error {
	const settled = "settled after its process ended: "
	if left.PRNumber == 0 {
		return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
			fmt.Sprintf("%snothing was answered on #%d", settled, left.Revises))
	}
	pr, err := p.FindByHead(ctx, repoOf(left), left.Branch)
	if err != nil {
		return err
	}
	state, posted := gitprovider.StateClosed, 0
	if pr != nil && pr.Number == left.Revises && pr.State == gitprovider.StateOpen {
		if state, posted, err = s.completeRevision(ctx, p, left, *pr); err != nil {
			return err
		}
	} else if pr != nil && pr.Number == left.Revises {
		state = pr.State
		there, err := answersOf(p, left, *pr).look(ctx)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		posted = answersOf(p, left, *pr).posted(there)
	}
	said := settled + saidPosted(posted, left.Answers)
	if hasEnded(state) {
		return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
			fmt.Sprintf("%s; #%d is %s", said, left.Revises, state))
	}
	return s.end(ctx, left, record.OutcomeRevised,
		record.Progress{State: record.StateOpened, Commit: left.Commit, PRNumber: left.Revises, PRURL: left.PRURL}, said)
}
