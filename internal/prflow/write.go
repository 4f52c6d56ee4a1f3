package prflow

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// write is gate 11: reserve, branch and commit, pull request, labels, record. From the reservation on it no longer
// heeds the caller's cancellation: half of it done is worse than all or nothing of it.
func (c *creation) write(ctx context.Context) (CreateResult, error) {
	c.progress("reserving the files")
	if err := c.avoidRemoved(ctx); err != nil {
		return CreateResult{}, err
	}
	reused, err := c.reserve(ctx)
	switch {
	case err != nil:
		return CreateResult{}, err
	case reused != nil:
		return c.reuse(ctx, *reused)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()

	c.reserved = true
	c.step("reserved")
	waited := c.waiting("writing the branch")
	reused, err = c.commitBranch(ctx)
	waited()
	switch {
	case err != nil:
		return CreateResult{}, c.abandon(ctx, err)
	case reused != nil: // of somebody whose records are not ours
		return c.reuse(ctx, *reused)
	}
	waited = c.waiting("opening the pull request")
	pr, err := c.openPullRequest(ctx)
	waited()
	if err != nil {
		return CreateResult{}, c.abandon(ctx, err)
	}
	c.step("opened")
	return c.complete(ctx, pr)
}

// complete ends a creation whose pull request is open. Whether somebody else has opened one meanwhile is looked up while
// the labels are set.
func (c *creation) complete(ctx context.Context, pr gitprovider.PullRequest) (CreateResult, error) {
	var rivals []gitprovider.PullRequest
	var both sync.WaitGroup
	both.Go(func() {
		defer c.caught(func() { rivals = nil })
		rivals = c.rivals(ctx, pr)
	})
	c.labelAndAssign(ctx, pr)
	both.Wait()
	c.step("labelled")
	if len(rivals) > 0 {
		reused, err := c.yield(ctx, pr, rivals)
		switch {
		case err != nil:
			return CreateResult{}, err
		case reused != nil:
			return c.reuse(ctx, *reused)
		}
	}
	result := c.finish(ctx, pr)
	c.step("recorded")
	return result, nil
}

// commitBranch makes branch and commit, or finds the pull request that somebody else has made of the same change.
func (c *creation) commitBranch(ctx context.Context) (reused *gitprovider.PullRequest, err error) {
	for range maxNames {
		err = c.tryCommit(ctx)
		if fault.CodeOf(err) != fault.Conflict || c.commit != "" {
			return nil, err
		}
		if reused, err = c.nameTaken(ctx, err); err != nil || reused != nil || c.commit != "" {
			return reused, err
		}
	}
	return nil, fault.New(fault.Conflict, "the branch %s of %s is made and removed by others again and again; try again later",
		c.branch, c.snapshot.Repo)
}

// tryCommit sets c.commit when it is certain that branch and commit exist.
func (c *creation) tryCommit(ctx context.Context) error {
	message, err := c.commitMessage()
	if err != nil {
		return err
	}
	made, err := c.resolution.Provider.Commit(ctx, gitprovider.CommitRequest{
		Snapshot: c.snapshot, Branch: c.branch, Changes: c.changes, Message: message, Time: c.started,
	})
	if err == nil {
		return c.committed(ctx, made.ID)
	}
	return c.lookForBranch(ctx, err)
}

// committed records that the branch has our commit.
func (c *creation) committed(ctx context.Context, id string) error {
	c.commit = id
	c.step("committed")
	err := c.Ledger.Advance(ctx, c.requestID, record.Progress{State: record.StateCommitted, Commit: c.commit})
	c.step("commit recorded")
	return err
}

// lookForBranch settles a failed Commit by looking. A definite answer stands; after an ambiguous one the branch may
// exist, and if it holds exactly our change, it is taken as made. That there is none says something only where nothing
// comes late.
func (c *creation) lookForBranch(ctx context.Context, failure error) error {
	if !fault.CodeOf(failure).Ambiguous() {
		return failure
	}
	tip, err := c.resolution.Provider.BranchTip(ctx, c.snapshot.Repo, c.branch)
	if err != nil {
		return failure
	}
	kind := branchTheirs
	if tip != "" {
		kind, err = c.kindOf(ctx, tip)
	}
	switch {
	case err != nil:
		return failure
	case kind == branchOurs:
		return c.committed(ctx, tip)
	}
	c.nothingLate = kind == branchTheirs && c.resolution.Provider.Lateness() == 0
	return failure
}

// openPullRequest opens the pull request. After an ambiguous failure it is looked whether there is one.
func (c *creation) openPullRequest(ctx context.Context) (gitprovider.PullRequest, error) {
	provider := c.resolution.Provider
	pr, failure := provider.OpenPullRequest(ctx, gitprovider.PullRequestSpec{
		Repo: c.snapshot.Repo, Base: c.snapshot.Base, Head: c.branch,
		Title: c.title, Body: c.body, Labels: c.Policy.Labels, Draft: c.Policy.Pulls.Draft,
	})
	if failure == nil || !fault.CodeOf(failure).Ambiguous() {
		return pr, failure
	}
	found, err := provider.FindByHead(ctx, c.snapshot.Repo, c.branch)
	if err == nil && found != nil && found.State == gitprovider.StateOpen {
		return *found, nil
	}
	c.nothingLate = err == nil && provider.Lateness() == 0
	return pr, failure
}

// commitMessage is the title, where the commit comes from, and our mark.
func (c *creation) commitMessage() (string, error) {
	key, err := c.Key()
	if err != nil {
		return "", err
	}
	m := commitMark{
		Provider: c.resolution.Provider.Name(), Repo: strings.ToLower(c.snapshot.Repo.String()), Branch: c.branch,
		Parent: c.snapshot.BaseCommit, Content: contentDigest(c.changes.Changes()), Request: c.requestID,
	}
	line, err := m.sign(key)
	return fmt.Sprintf("%s\n\nProposed through Claude Ops at tier %s, request %s.\n\n%s\n", c.title, c.Tier, c.requestID, line), err
}

// finish records the pull request. It exists whatever the store says, so a failure to record is a warning; the
// reservation that remains lets the next request on these files settle it.
func (c *creation) finish(ctx context.Context, pr gitprovider.PullRequest) CreateResult {
	attempt := c.attempt(record.OutcomeOpened, nil)
	attempt.PRNumber, attempt.PRURL = pr.Number, pr.URL
	to := record.Progress{State: record.StateOpened, Branch: c.branch, Commit: c.commit, PRNumber: pr.Number, PRURL: pr.URL}
	notices := c.notices(record.EventOpened, attempt)
	c.reserved = false
	err := c.Ledger.Finish(ctx, c.requestID, to, attempt, notices...)
	if fault.CodeOf(err) == fault.Conflict { // settled by another process, which took this one for dead
		err = c.Ledger.Record(ctx, attempt, nil)
	}
	c.recorded = err == nil
	if err != nil {
		c.Log.Error("pull request not recorded", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
		c.warnings = append(c.warnings, "the pull request is open but could not be recorded yet: "+c.shown(err))
	}
	return c.result(pr)
}

func (c *creation) result(pr gitprovider.PullRequest) CreateResult {
	r := CreateResult{
		Number: pr.Number, URL: pr.URL, Branch: pr.Branch, Commit: c.commit, Files: c.paths(), Warnings: c.warnings,
	}
	if r.Commit == "" {
		r.Commit = pr.HeadCommit
	}
	return r
}

func (c *creation) paths() []string {
	out := make([]string, 0, c.changes.Len())
	for _, p := range c.changes.Paths() {
		out = append(out, p.String())
	}
	return out
}

// branchHolds reports whether the branch has exactly what the changes ask for at their paths.
func branchHolds(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, branch string, changes []gitprovider.Change,
) (bool, error) {
	query := gitprovider.SnapshotQuery{Repo: repo, Base: branch}
	for _, change := range changes {
		query.Paths = append(query.Paths, change.Path)
	}
	snapshot, err := p.Snapshot(ctx, query)
	if err != nil {
		return false, err
	}
	for _, change := range changes {
		entry, exists := snapshot.Tree[change.Path.String()]
		wanted := change.Action != gitprovider.ActionDelete
		if exists != wanted || wanted && entry.ID != gitprovider.BlobID([]byte(change.Content), entry.ID) {
			return false, nil
		}
	}
	return true, nil
}
