package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// write ignores the caller's cancellation from the reservation on: a half-done write is worse than a complete one or
// none.
func (w *writer) write(ctx context.Context) (CreateResult, error) {
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
	w.service.step("reserved")
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
	w.service.step("opened")
	return w.complete(ctx, pr)
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
