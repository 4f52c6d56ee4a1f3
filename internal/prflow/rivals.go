package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// rivals are the older pull requests of ours on the same files that were opened since the snapshot, by processes with
// records of their own. They are not looked for where there can be none: at a host whose pull requests are in our records,
// and when ours has the number after the highest one of the snapshot.
func (c *creation) rivals(ctx context.Context, pr gitprovider.PullRequest) []gitprovider.PullRequest {
	provider := c.resolution.Provider
	if provider.Lateness() == 0 || pr.Number == c.snapshot.LastNumber+1 {
		return nil
	}
	open, err := provider.OpenOurs(ctx, c.snapshot.Repo, pr.Number)
	if err == nil {
		now := &gitprovider.Snapshot{Repo: c.snapshot.Repo, Open: open}
		if err = c.keepOurs(now); err == nil {
			return slices.DeleteFunc(now.Open, func(other gitprovider.PullRequest) bool {
				return len(c.overlap(other.Paths)) == 0
			})
		}
	}
	c.Log.Warn("others' pull requests not looked for", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
	return nil
}

// yield takes the pull request back that this creation has just opened, since an older one of ours changes the same files.
// The answer is that of the duplicate gate. If it cannot be taken back, it stays, and a warning says so: then neither a pull
// request nor an error is returned.
func (c *creation) yield(ctx context.Context, pr gitprovider.PullRequest, rivals []gitprovider.PullRequest) (
	*gitprovider.PullRequest, error) {
	older := rivals[0]
	if err := c.withdraw(ctx, pr, older); err != nil {
		c.Log.Warn("second pull request not withdrawn", "request_id", c.requestID, "pr", pr.Number, "error", logText(c.Service, err))
		c.warnings = append(c.warnings, fmt.Sprintf("#%d, opened at the same moment, changes the same files, and this one could "+
			"not be withdrawn: close one of them", older.Number))
		return nil, nil
	}
	if !slices.ContainsFunc(rivals, func(r gitprovider.PullRequest) bool { return r.Branch == c.branch }) {
		if err := c.resolution.Provider.DeleteBranch(ctx, c.snapshot.Repo, c.branch, c.commit); err != nil {
			c.Log.Warn("branch of a withdrawn pull request not removed", "request_id", c.requestID, "branch", c.branch,
				"error", logText(c.Service, err))
		}
	}
	c.snapshot.Open, c.commit = rivals, ""
	c.verdicts = slices.DeleteFunc(c.verdicts, func(v record.Verdict) bool { return v.Gate == record.GateDuplicate })
	reused, err := c.duplicateGate(ctx)
	if err == nil && reused == nil { // it has changed in between
		err = c.deny(record.GateDuplicate, duplicateOf(older.Number, older.URL, older.Title, c.overlap(older.Paths)))
	}
	return reused, err
}

// withdraw closes the pull request. Its body says that nobody has rejected it, in words and by the mark, for everybody who
// asks the cooldown gate: with these records or with others.
func (c *creation) withdraw(ctx context.Context, pr, older gitprovider.PullRequest) error {
	if c.commit == "" || pr.HeadCommit != "" && pr.HeadCommit != c.commit {
		return fault.New(fault.Conflict, "the branch %s has moved", c.branch)
	}
	if err := c.Ledger.Advance(ctx, c.requestID, record.Progress{State: record.StateCommitted, Undone: true}); err != nil {
		return err
	}
	key, err := c.Key()
	if err != nil {
		return err
	}
	body, err := withdrawnBody(newMarkReader(key, c.resolution.Provider.Name(), c.snapshot.Repo), c.body, c.branch,
		fmt.Sprintf("Withdrawn by Claude Ops: #%d, opened at the same moment, changes the same files.", older.Number))
	if err != nil {
		return err
	}
	err = c.resolution.Provider.Withdraw(ctx, c.snapshot.Repo, gitprovider.Withdrawal{
		Number: pr.Number, Branch: c.branch, Head: c.commit, Body: body,
	})
	if fault.CodeOf(err).Ambiguous() && c.isWithdrawn(ctx, pr) {
		return nil
	}
	return err
}

// isWithdrawn looks whether the pull request was withdrawn after all.
func (c *creation) isWithdrawn(ctx context.Context, pr gitprovider.PullRequest) bool {
	found, err := c.resolution.Provider.FindByHead(ctx, c.snapshot.Repo, c.branch)
	return err == nil && found != nil && found.Number == pr.Number && found.State == gitprovider.StateClosed &&
		newMarkReader(nil, c.resolution.Provider.Name(), c.snapshot.Repo).withdrawn(*found)
}

// withdrawnBody is a body with the reason at its beginning, and with a mark that says the same.
func withdrawnBody(r markReader, body, branch, reason string) (string, error) {
	m, _ := r.read(gitprovider.PullRequest{Body: body, Branch: branch})
	m.Provider, m.Repo, m.Branch, m.Withdrawn = r.provider, r.repo, branch, true
	signed, err := m.sign(r.key)
	rest := strings.TrimRight(r.form.ReplaceAllString(body, ""), " \t\r\n")
	return reason + "\n\n" + rest + "\n\n" + signed + "\n", err
}
