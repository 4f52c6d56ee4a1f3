package prflow

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// labelAndAssign gives the open pull request what it shall have beside its content. The calls run side by side. None of it
// makes the pull request, so each failure is a warning in a successful answer.
func (c *creation) labelAndAssign(ctx context.Context, pr gitprovider.PullRequest) {
	var labelled, assigned string
	var both sync.WaitGroup
	both.Go(func() { labelled = c.label(ctx, pr) })
	both.Go(func() { assigned = c.assign(ctx, pr) })
	both.Wait()
	for _, warning := range []string{labelled, assigned} {
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
	}
}

// label adds the labels that the creation did not set. It returns a warning, or "": without labels the pull request is
// still ours by its branch.
func (c *creation) label(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	var missing []string
	for _, l := range c.Policy.Labels {
		if !slices.Contains(pr.Labels, l) {
			missing = append(missing, l)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	if err := c.resolution.Provider.Label(ctx, c.snapshot.Repo, pr.Number, missing); err != nil {
		c.Log.Warn("labels not set", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
		return fmt.Sprintf("not all of the labels %v could be set: %s", missing, fault.From(err).Message)
	}
	return ""
}

// assign asks for the reviews and assigns the people that the policy names, if the provider knows such things.
func (c *creation) assign(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	wanted := c.Policy.Pulls
	provider, can := c.resolution.Provider.(gitprovider.Assigner)
	if !can || len(wanted.Reviewers)+len(wanted.Assignees) == 0 {
		return ""
	}
	if err := provider.Assign(ctx, c.snapshot.Repo, pr.Number, wanted.Reviewers, wanted.Assignees); err != nil {
		c.Log.Warn("people not asked", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
		return "not everybody could be asked for a review or assigned: " + fault.From(err).Message
	}
	return ""
}
