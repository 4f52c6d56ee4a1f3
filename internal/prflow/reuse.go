package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// reuse answers with the pull request that already holds the very same change, after it has completed what that one lacks.
func (c *creation) reuse(ctx context.Context, pr gitprovider.PullRequest) (CreateResult, error) {
	attempt := c.attempt(record.OutcomeReused, nil)
	attempt.PRNumber, attempt.PRURL, attempt.Branch = pr.Number, pr.URL, pr.Branch
	if err := c.record(ctx, attempt, nil); err != nil {
		return CreateResult{}, err
	}
	if !c.DryRun {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		c.progress("completing the pull request that there is")
		c.sideBySide(
			func() string { return c.label(ctx, pr) },
			func() string { return c.askAgain(ctx, pr) },
			func() string { return c.mendBody(ctx, pr) },
		)
	}
	r := c.result(pr)
	r.Reused, r.DryRun = true, c.DryRun
	return r, nil
}

// askAgain asks those reviewers and assignees of the policy that were not asked, as when the process ended before it came to
// that. What people have done about either since is not undone: who has reviewed is not asked again, and assignees are set only
// where there is none.
func (c *creation) askAgain(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	editor, can := c.resolution.Provider.(gitprovider.Editor)
	if !can || !c.asksPeople() {
		return ""
	}
	details, err := editor.Details(ctx, c.snapshot.Repo, pr.Number)
	if err != nil {
		return c.peopleWarning(pr, err)
	}
	reviewers, assignees := c.notAsked(details)
	if len(details.Assignees) > 0 {
		assignees = nil
	}
	return c.assign(ctx, pr, reviewers, assignees)
}

// mendBody puts our body back, with footer and mark, where it was lost on the way. A body that somebody has rewritten stays as
// it is.
func (c *creation) mendBody(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	seen := !pr.CreatedAt.IsZero() // else nobody has looked at it, as after a lost race
	editor, can := c.resolution.Provider.(gitprovider.Editor)
	if !can || !seen || !strings.HasPrefix(pr.Branch, gitprovider.BranchPrefix) || markForm().MatchString(pr.Body) {
		return ""
	}
	bodies, err := c.bodiesOf(ctx, pr)
	if err == nil {
		at := slices.IndexFunc(bodies, func(body string) bool { return isRestOf(pr.Body, body) })
		if at < 0 {
			return fmt.Sprintf("the body of #%d was rewritten and lacks the mark of Claude Ops; it was left as it is", pr.Number)
		}
		err = editor.SetBody(ctx, c.snapshot.Repo, pr.Number, bodies[at])
	}
	if err != nil {
		c.Log.Warn("body not mended", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
		return fmt.Sprintf("the body of #%d lacks the mark of Claude Ops, which could not be put back: %s", pr.Number,
			c.shown(err))
	}
	return ""
}

// bodiesOf lists what the pull request's body may have been: as recorded, and as this request would make it for that branch.
func (c *creation) bodiesOf(ctx context.Context, pr gitprovider.PullRequest) ([]string, error) {
	proposals, err := c.History.ByDigest(ctx, c.digest)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range proposals {
		if p.PRNumber == pr.Number && p.Branch == pr.Branch && p.Body != "" {
			out = append(out, p.Body)
		}
	}
	anew := *c
	anew.branch, anew.warnings = pr.Branch, nil // the mark names the branch
	if err := anew.dress(); err != nil {
		return nil, err
	}
	return append(out, anew.body), nil
}

// isRestOf reports whether a body is what is left of ours: its beginning, or all that the agent wrote with a footer that is
// damaged.
func isRestOf(have, ours string) bool {
	have, ours = plainLines(have), plainLines(ours)
	if strings.Contains(have, strings.TrimSpace(footerOpening)) {
		return plainLines(withoutFooter(have)) == plainLines(withoutFooter(ours))
	}
	return strings.HasPrefix(ours, have)
}

// plainLines is a text without what hosts change about it: line ends, and space around it.
func plainLines(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
