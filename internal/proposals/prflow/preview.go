package prflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/plural"
	"github.com/claudeops/claudeops/internal/records/record"
)

// preview answers a dry run with everything but the writing, and records the proposal so that a person can look at it.
func (c *creation) preview(ctx context.Context) (CreateResult, error) {
	provider, snapshot := c.evidence.resolution.Provider, c.evidence.snapshot
	usage, err := c.service.History.Usage(ctx, provider.Name(), snapshot.Repo.Owner, snapshot.Repo.Name,
		c.evidence.claim())
	if err != nil {
		return CreateResult{}, err
	}
	c.evidence.usage = usage
	if _, err := c.judge(ctx, phaseReserve); err != nil {
		return CreateResult{}, err
	}
	if err := c.admitted(ctx); err != nil {
		return CreateResult{}, err
	}
	proposal := c.proposal(record.StateDryRun)
	if err := c.record(ctx, c.row(record.OutcomeDryRun, nil), &proposal); err != nil {
		return CreateResult{}, err
	}
	shown := Preview{Base: snapshot.Base, Title: c.draft.title, Labels: c.rules.Policy.Labels, Gates: c.verdicts.all(),
		Calls: c.calls()}
	if c.request.asked.Preview == PreviewFull {
		shown.Body = withoutMark(c.draft.body)
		shown.Diff = c.shownDiff(ctx)
	}
	return CreateResult{
		Branch: c.draft.branch, Files: c.request.paths(), Lines: c.evidence.lines, DryRun: true,
		Revised: proposal.Revises > 0, Warnings: c.allWarnings(),
		Preview: &shown,
	}, nil
}

// shownDiff returns the difference without lines that look like they hold secrets: they may stand on the base branch,
// where the agent is not shown them either.
func (c *creation) shownDiff(ctx context.Context) string {
	out := shownText{text: diff(c.request.changes.Changes(), c.evidence.target())}
	if err := (textShower{secrets: c.rules.secrets}).redact(ctx, "the difference", &out); err != nil {
		return "[not shown: it holds what looks like secrets]\n"
	}
	return capped(out.text)
}

// PreviewFull is the value of CreateRequest.Preview that asks for body and diff.
const PreviewFull = "full"

// withoutMark returns a body as people see it: the mark at its end is an HTML comment.
func withoutMark(body string) string {
	return strings.TrimRight(markForm().ReplaceAllLiteralString(body, ""), "\n") + "\n"
}

// calls says what would be done.
func (c *creation) calls() []string {
	repo := c.evidence.resolution.Provider.Name() + ":" + c.evidence.snapshot.Repo.String()
	if rev := c.evidence.revision; rev != nil && c.request.asked.repliesOnly() {
		return replying{c}.replyCalls(rev.pr.Number)
	} else if rev != nil {
		return append([]string{
			fmt.Sprintf("add one commit of %s to the branch %s in %s at %s", plural.Files(c.request.changes.Len()), c.draft.branch, repo,
				short(c.evidence.parent())),
			fmt.Sprintf("set title and body of #%d", rev.pr.Number),
			fmt.Sprintf("answer in a comment on #%d", rev.pr.Number),
		}, replying{c}.lineCalls(rev.pr.Number)...)
	}
	calls := []string{
		fmt.Sprintf("create the branch %s in %s at %s (%s) with one commit of %s",
			c.draft.branch, repo, short(c.evidence.snapshot.BaseCommit), c.evidence.snapshot.Base,
			plural.Files(c.request.changes.Len())),
		fmt.Sprintf("open the pull request %q from %s into %s", c.draft.title, c.draft.branch, c.evidence.snapshot.Base),
		"label it " + strings.Join(c.rules.Policy.Labels, ", "),
	}
	if people := c.rules.Policy.Pulls.Reviewers; len(people) > 0 {
		calls = append(calls, "ask "+strings.Join(people, ", ")+" for a review")
	}
	if people := c.rules.Policy.Pulls.Assignees; len(people) > 0 {
		calls = append(calls, "assign "+strings.Join(people, ", "))
	}
	return calls
}
