package prflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// This file takes a pull request back that turns out to be the second one on the same files: two processes with records of
// their own have opened one at the same moment. The older one stays.

// olderPulls are the older pull requests of ours on the same files that were opened since the snapshot, by processes with
// records of their own. They are not looked for where there can be none: at a host whose pull requests are in our records,
// and when ours has the number after the highest one of the snapshot.
func (w *writer) olderPulls(ctx context.Context, pr gitprovider.PullRequest) []gitprovider.PullRequest {
	evidence := &w.creation.evidence
	if w.provider.Lateness() == 0 || pr.Number == evidence.snapshot.LastNumber+1 {
		return nil
	}
	open, err := w.provider.OpenOurs(ctx, w.repo, pr.Number)
	now := &gitprovider.Snapshot{Repo: w.repo, Open: open}
	if err == nil {
		err = evidence.sortByOrigin(now)
	}
	if err != nil {
		w.creation.log.warn("others' pull requests not looked for", err, "pr", pr.Number)
		return nil
	}
	return slices.DeleteFunc(now.Open, func(other gitprovider.PullRequest) bool {
		return len(w.creation.request.overlap(other.Paths)) == 0
	})
}

// yield takes the pull request back that this creation has just opened, since an older one of ours changes the same files.
// The answer is that of the duplicate gate. If it cannot be taken back, it stays, and a warning says so: then neither a pull
// request nor an error is returned.
func (w *writer) yield(ctx context.Context, pr gitprovider.PullRequest, olderPulls []gitprovider.PullRequest) (*sameChange, error) {
	c, older := w.creation, olderPulls[0]
	if err := w.withdraw(ctx, pr, older); err != nil {
		c.log.warn("second pull request not withdrawn", err, "pr", pr.Number)
		c.warnings = append(c.warnings, fmt.Sprintf("#%d, opened at the same moment, changes the same files, and this one could "+
			"not be withdrawn: close one of them", older.Number))
		return nil, nil
	}
	if !slices.ContainsFunc(olderPulls, func(o gitprovider.PullRequest) bool { return o.Branch == c.draft.branch }) {
		if err := w.provider.DeleteBranch(ctx, w.repo, c.draft.branch, w.commit); err != nil {
			c.log.warn("branch of a withdrawn pull request not removed", err, "branch", c.draft.branch)
		}
	}
	c.evidence.snapshot.Open, w.commit = olderPulls, ""
	same, err := c.judge(ctx, phasePulls)
	if err == nil && same == nil { // it has changed in between
		err = c.denyDuplicate(older.Number, older.URL, older.Title, older.Paths)
	}
	return same, err
}

// withdraw closes the pull request that this creation has opened, if nobody has changed its branch.
func (w *writer) withdraw(ctx context.Context, pr, older gitprovider.PullRequest) error {
	draft := w.creation.draft
	if w.commit == "" || pr.HeadCommit != "" && pr.HeadCommit != w.commit {
		return fault.New(fault.Conflict, "the branch %s has moved", draft.branch)
	}
	if err := w.advance(ctx, record.Progress{State: record.StateCommitted, Undone: true}); err != nil {
		return err
	}
	reader, err := w.settler.marksOf(w.provider.Name(), w.repo)
	if err != nil {
		return err
	}
	pr.Body, pr.Branch, pr.HeadCommit = draft.body, draft.branch, w.commit
	err = withdraw(ctx, w.provider, w.repo, reader, pr,
		fmt.Sprintf("Withdrawn by Claude Ops: #%d, opened at the same moment, changes the same files.", older.Number))
	if fault.CodeOf(err).Ambiguous() && w.isWithdrawn(ctx, pr, reader) {
		return nil
	}
	return err
}

// isWithdrawn looks whether the pull request was withdrawn after all.
func (w *writer) isWithdrawn(ctx context.Context, pr gitprovider.PullRequest, reader markReader) bool {
	found, err := w.provider.FindByHead(ctx, w.repo, w.creation.draft.branch)
	return err == nil && found != nil && found.Number == pr.Number && found.State == gitprovider.StateClosed && reader.withdrawn(*found)
}
