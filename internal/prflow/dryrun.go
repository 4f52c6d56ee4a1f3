package prflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// Preview is what a person needs to judge a dry run (design §3, gate 10).
type Preview struct {
	Base   string           `json:"base"`
	Title  string           `json:"title"`
	Body   string           `json:"body"`
	Labels []string         `json:"labels"`
	Diff   string           `json:"diff"` // unified, against the base commit
	Gates  []record.Verdict `json:"gates" brief:"true"`
	Calls  []string         `json:"calls"` // what would have been done, in order
}

// maxDiff bounds the diff in a preview, in bytes, so that an answer stays readable for a model.
const maxDiff = 64 << 10

// dryRun answers with everything but the writing, and records the proposal so that a person can look at it.
func (c *creation) dryRun(ctx context.Context) (CreateResult, error) {
	proposal := c.proposal(record.StateDryRun)
	if err := c.record(ctx, c.attempt(record.OutcomeDryRun, nil), &proposal); err != nil {
		return CreateResult{}, err
	}
	return CreateResult{
		Branch: c.branch, Files: c.paths(), DryRun: true, Warnings: c.warnings,
		Preview: &Preview{
			Base: c.snapshot.Base, Title: c.title, Body: c.body, Labels: c.Policy.Labels,
			Diff: c.diff(), Gates: c.allVerdicts(), Calls: c.calls(),
		},
	}, nil
}

func (c *creation) calls() []string {
	repo := c.resolution.Provider.Name() + ":" + c.snapshot.Repo.String()
	calls := []string{
		fmt.Sprintf("create the branch %s in %s at %s (%s) with one commit of %d files",
			c.branch, repo, short(c.snapshot.BaseCommit), c.snapshot.Base, c.changes.Len()),
		fmt.Sprintf("open the pull request %q from %s into %s", c.title, c.branch, c.snapshot.Base),
		"label it " + strings.Join(c.Policy.Labels, ", "),
	}
	if people := c.Policy.Pulls.Reviewers; len(people) > 0 {
		calls = append(calls, "ask "+strings.Join(people, ", ")+" for a review")
	}
	if people := c.Policy.Pulls.Assignees; len(people) > 0 {
		calls = append(calls, "assign "+strings.Join(people, ", "))
	}
	return calls
}

func (c *creation) diff() string {
	var b strings.Builder
	for _, change := range c.changes.Changes() {
		b.WriteString(fileDiff(change, c.snapshot))
	}
	if b.Len() <= maxDiff {
		return b.String()
	}
	cut := strings.ToValidUTF8(b.String()[:maxDiff], "")
	return cut + fmt.Sprintf("\n[cut: the diff has %d bytes]\n", b.Len())
}

func fileDiff(change gitprovider.Change, snap *gitprovider.Snapshot) string {
	path := change.Path.String()
	oldName, newName := "a/"+path, "b/"+path
	switch change.Action {
	case gitprovider.ActionCreate:
		oldName = "/dev/null"
	case gitprovider.ActionDelete:
		newName = "/dev/null"
	}
	before, known := snap.Contents[change.Path]
	if !known && change.Action != gitprovider.ActionCreate {
		return fmt.Sprintf("--- %s\n+++ %s\n[not shown: the file on the base branch is larger than %d bytes]\n",
			oldName, newName, gitprovider.MaxContentRead)
	}
	return udiff.Unified(oldName, newName, string(before), change.Content)
}
