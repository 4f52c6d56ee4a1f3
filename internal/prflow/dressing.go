package prflow

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// labelAndAssign gives the open pull request what it shall have beside its content. The calls run side by side. None of it
// makes the pull request, so each failure is a warning in a successful answer.
func (c *creation) labelAndAssign(ctx context.Context, pr gitprovider.PullRequest) {
	c.sideBySide(
		func() string { return c.label(ctx, pr) },
		func() string { return c.assign(ctx, pr, c.Policy.Pulls.Reviewers, c.Policy.Pulls.Assignees) },
	)
}

// sideBySide runs the steps together and adds the warnings that they end with, if they are not "".
func (c *creation) sideBySide(steps ...func() (warning string)) {
	warnings := make([]string, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() {
			defer c.caught(func() { warnings[i] = "a step after the pull request was opened failed: internal error" })
			warnings[i] = step()
		})
	}
	all.Wait()
	for _, warning := range warnings {
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
	}
}

// caught ends a panic in a goroutine of the pipeline, which would end the process, and then calls instead. It is to be deferred.
func (c *creation) caught(instead func()) {
	if p := recover(); p != nil {
		c.Log.Error("panic in a creation", "request_id", c.requestID, "panic", p, "stack", string(debug.Stack()))
		instead()
	}
}

// label adds the labels that the pull request lacks. It returns a warning, or "": without labels the pull request is still
// ours by its branch.
func (c *creation) label(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	missing := without(c.Policy.Labels, pr.Labels)
	if len(missing) == 0 {
		return ""
	}
	err := c.resolution.Provider.Label(ctx, c.snapshot.Repo, pr.Number, missing)
	if err == nil {
		return ""
	}
	if details, known := c.lookAgain(ctx, pr, err); known && len(without(missing, details.Labels)) == 0 {
		return ""
	}
	c.Log.Warn("labels not set", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
	return fmt.Sprintf("not all of the labels %v could be set: %s", missing, c.shown(err))
}

// shown is an error for a warning.
func (c *creation) shown(err error) string { return c.Secrets.Redact(fault.From(err).Message) }

// without gives the names that are not among the others, letter case aside: forges differ in whether it counts.
func without(names, others []string) []string {
	var out []string
	for _, name := range names {
		if !slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(other, name) }) {
			out = append(out, name)
		}
	}
	return out
}

// lookAgain reads what the pull request has after a write of which nobody knows whether it arrived. known is false after a
// definite failure, and if the look fails, too.
func (c *creation) lookAgain(ctx context.Context, pr gitprovider.PullRequest, failure error) (_ gitprovider.Details, known bool) {
	editor, can := c.resolution.Provider.(gitprovider.Editor)
	if !can || !fault.CodeOf(failure).Ambiguous() {
		return gitprovider.Details{}, false
	}
	details, err := editor.Details(ctx, c.snapshot.Repo, pr.Number)
	return details, err == nil
}

// asksPeople reports whether the policy names somebody and the provider knows such things.
func (c *creation) asksPeople() bool {
	_, can := c.resolution.Provider.(gitprovider.Assigner)
	return can && len(c.Policy.Pulls.Reviewers)+len(c.Policy.Pulls.Assignees) > 0
}

// notAsked lists those of the policy's people that were neither asked for a review nor gave one, and those who are not
// assigned. A team whose member has reviewed is not asked any more, so that any review counts for it.
func (c *creation) notAsked(d gitprovider.Details) (reviewers, assignees []string) {
	for _, name := range without(c.Policy.Pulls.Reviewers, append(slices.Clone(d.Requested), d.Reviewed...)) {
		if isTeam := strings.Contains(name, "/"); !isTeam || len(d.Reviewed) == 0 {
			reviewers = append(reviewers, name)
		}
	}
	return reviewers, without(c.Policy.Pulls.Assignees, d.Assignees)
}

// assign asks for the reviews and assigns the people, if the provider knows such things.
func (c *creation) assign(ctx context.Context, pr gitprovider.PullRequest, reviewers, assignees []string) (warning string) {
	provider, can := c.resolution.Provider.(gitprovider.Assigner)
	if !can || len(reviewers)+len(assignees) == 0 {
		return ""
	}
	err := provider.Assign(ctx, c.snapshot.Repo, pr.Number, reviewers, assignees)
	if err == nil {
		return ""
	}
	if details, known := c.lookAgain(ctx, pr, err); known {
		if toReview, toAssign := c.notAsked(details); len(toReview)+len(toAssign) == 0 {
			return ""
		}
	}
	return c.peopleWarning(pr, err)
}

func (c *creation) peopleWarning(pr gitprovider.PullRequest, err error) string {
	c.Log.Warn("people not asked", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
	return "not everybody could be asked for a review or assigned: " + c.shown(err)
}
