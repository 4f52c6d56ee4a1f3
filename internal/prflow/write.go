package prflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// write is gate 11: reserve, branch and commit, pull request, labels, record. From the reservation on it no longer
// heeds the caller's cancellation: half of it done is worse than all or nothing of it.
func (c *creation) write(ctx context.Context) (CreateResult, error) {
	c.progress("reserving the files")
	reused, err := c.reserve(ctx)
	switch {
	case err != nil:
		return CreateResult{}, err
	case reused != nil:
		return c.reuse(ctx, *reused)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()

	c.step("reserved")
	c.progress("writing the branch")
	if err := c.commitBranch(ctx); err != nil {
		return CreateResult{}, c.abandon(ctx, err)
	}
	c.progress("opening the pull request")
	pr, err := c.openPullRequest(ctx)
	if err != nil {
		return CreateResult{}, c.abandon(ctx, err)
	}
	c.step("opened")
	c.labelAndAssign(ctx, pr)
	c.step("labelled")
	result := c.finish(ctx, pr)
	c.step("recorded")
	return result, nil
}

// commitBranch makes branch and commit. If somebody took the branch's name since the snapshot, the next name is tried.
func (c *creation) commitBranch(ctx context.Context) error {
	for {
		err := c.tryCommit(ctx)
		if fault.CodeOf(err) != fault.Conflict || c.commit != "" || !c.nextBranch(ctx) {
			return err
		}
	}
}

// nextBranch moves on to the next name, if the present one is taken by now and there is a further one.
func (c *creation) nextBranch(ctx context.Context) bool {
	tip, err := c.resolution.Provider.BranchTip(ctx, c.snapshot.Repo, c.branch)
	names := c.branchNames()
	next := slices.Index(names, c.branch) + 1
	if err != nil || tip == "" || next == len(names) {
		return false
	}
	warned := c.warnings
	c.branch = names[next]
	if err := c.dress(); err != nil { // the mark names the branch
		return false
	}
	c.warnings = warned
	return c.Ledger.Advance(ctx, c.requestID, Progress{State: StateReserved, Branch: c.branch}) == nil
}

// tryCommit sets c.commit when it is certain that branch and commit exist.
func (c *creation) tryCommit(ctx context.Context) error {
	made, err := c.resolution.Provider.Commit(ctx, gitprovider.CommitRequest{
		Snapshot: c.snapshot, Branch: c.branch, Changes: c.changes, Message: c.commitMessage(), Time: c.started,
	})
	if err == nil {
		c.commit = made.ID
	} else if err = c.lookForBranch(ctx, err); err != nil {
		return err
	}
	c.step("committed")
	err = c.Ledger.Advance(ctx, c.requestID, Progress{State: StateCommitted, Commit: c.commit})
	c.step("commit recorded")
	return err
}

// lookForBranch settles a failed Commit by looking. A definite answer stands; after an ambiguous one the branch may
// exist, and if it holds exactly our change, it is taken as made.
func (c *creation) lookForBranch(ctx context.Context, failure error) error {
	if !ambiguous(failure) {
		return failure
	}
	tip, err := c.resolution.Provider.BranchTip(ctx, c.snapshot.Repo, c.branch)
	switch {
	case err != nil:
		return unsettled(failure)
	case tip == "":
		return failure
	case tip == c.snapshot.BaseCommit: // the host may be between branch and commit
		return unsettled(failure)
	}
	holds, err := branchHolds(ctx, c.resolution.Provider, c.snapshot.Repo, c.branch, c.changes.Changes())
	switch {
	case err != nil:
		return unsettled(failure)
	case !holds:
		return failure
	}
	c.commit = tip
	return nil
}

func (c *creation) openPullRequest(ctx context.Context) (gitprovider.PullRequest, error) {
	provider := c.resolution.Provider
	pr, failure := provider.OpenPullRequest(ctx, gitprovider.PullRequestSpec{
		Repo: c.snapshot.Repo, Base: c.snapshot.Base, Head: c.branch,
		Title: c.title, Body: c.body, Labels: c.Policy.Labels, Draft: c.Policy.Pulls.Draft,
	})
	if failure == nil {
		return pr, nil
	}
	if ambiguous(failure) {
		found, err := provider.FindByHead(ctx, c.snapshot.Repo, c.branch)
		switch {
		case err != nil:
			return pr, unsettled(failure)
		case found != nil && found.State == gitprovider.StateOpen:
			return *found, nil
		}
	}
	return pr, failure
}

func (c *creation) commitMessage() string {
	return fmt.Sprintf("%s\n\nProposed through Claude Ops at tier %s, request %s.\n", c.title, c.Tier, c.requestID)
}

// finish records the pull request. It exists whatever the store says, so a failure to record is a warning; the
// reservation that remains lets the next request on these files settle it.
func (c *creation) finish(ctx context.Context, pr gitprovider.PullRequest) CreateResult {
	attempt := c.attempt(OutcomeOpened, nil)
	attempt.PRNumber, attempt.PRURL = pr.Number, pr.URL
	to := Progress{State: StateOpened, Branch: c.branch, Commit: c.commit, PRNumber: pr.Number, PRURL: pr.URL}
	notices := c.notices(EventOpened, attempt)
	err := c.Ledger.Finish(ctx, c.requestID, to, attempt, notices...)
	if fault.CodeOf(err) == fault.Conflict { // settled by another process, which took this one for dead
		err = c.Ledger.Record(ctx, attempt, nil)
	}
	if err != nil {
		c.Log.Error("pull request not recorded", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
		c.warnings = append(c.warnings, "the pull request is open but could not be recorded yet: "+fault.From(err).Message)
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

// ambiguous reports whether the provider may have acted although the call failed.
func ambiguous(err error) bool {
	switch fault.CodeOf(err) {
	case fault.UpstreamError, fault.Timeout, fault.Internal, fault.Misconfigured:
		return true
	}
	return false
}
