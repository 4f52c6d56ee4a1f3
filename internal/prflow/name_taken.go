package prflow

import (
	"context"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// maxNames bounds how often a branch is tried to be made: three names, and some that vanish in between.
const maxNames = 8

// branchKind says what a branch of the name that we want holds.
type branchKind int

const (
	branchTheirs branchKind = iota // something else
	branchOurs                     // exactly our change on the base: the same tree
	branchBare                     // nothing beyond the base: somebody is between branch and commit, or has died there
)

// makerWaits are the pauses in which whoever has made the branch of the same change may open its pull request, before it
// counts as left behind.
func makerWaits() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
}

// nameTaken decides what to do about a branch that somebody has made since the snapshot. It reveals a race that our own
// records do not show (another state folder, or one that was lost), so the duplicate gate is asked again. A branch that is
// exactly our change is taken over, and sets c.commit; beside any other one the next name is chosen. With neither a pull
// request, an error nor a commit the caller is to try again.
func (c *creation) nameTaken(ctx context.Context, failure error) (reused *gitprovider.PullRequest, err error) {
	provider, repo := c.resolution.Provider, c.snapshot.Repo
	for _, wait := range append(makerWaits(), 0) {
		tip, err := provider.BranchTip(ctx, repo, c.branch)
		if err != nil || tip == "" { // the base has moved, or a branch above or below is in the way
			return nil, failure
		}
		kind, err := c.kindOf(ctx, tip)
		if err != nil {
			return nil, err
		}
		if !c.heir || kind == branchTheirs {
			if reused, err := c.askRemoteGatesAgain(ctx); err != nil || reused != nil {
				return reused, err
			}
		}
		switch {
		case kind == branchTheirs:
			return nil, c.nextBranch(ctx, failure)
		case wait == 0 || c.heir || provider.Lateness() == 0: // or whoever works on it would hold the files in our records
			return nil, c.takeBranch(ctx, kind, tip, failure)
		}
		c.progress("waiting for whoever is making the same change")
		c.Sleep(ctx, wait)
	}
	return nil, failure
}

// takeBranch takes over a branch that nobody works on, unless it is that of a pull request that has ended. A bare one is
// removed, to be made again.
func (c *creation) takeBranch(ctx context.Context, kind branchKind, tip string, failure error) error {
	if kind == branchOurs {
		pr, err := c.resolution.Provider.FindByHead(ctx, c.snapshot.Repo, c.branch)
		switch {
		case err != nil:
			return err
		case pr != nil && pr.State != gitprovider.StateOpen && pr.HeadCommit == tip:
			return c.nextBranch(ctx, failure)
		}
		return c.committed(ctx, tip)
	}
	err := c.resolution.Provider.DeleteBranch(ctx, c.snapshot.Repo, c.branch, tip)
	if fault.CodeOf(err) == fault.Conflict { // its commit has arrived
		return nil
	}
	return err
}

// nextBranch moves on to the next name, if there is one.
func (c *creation) nextBranch(ctx context.Context, failure error) error {
	names := c.branchNames()
	next := slices.Index(names, c.branch) + 1
	if next == len(names) {
		return failure
	}
	if err := c.rename(names[next]); err != nil {
		return err
	}
	return c.Ledger.Advance(ctx, c.requestID, record.Progress{State: record.StateReserved, Branch: c.branch})
}

// rename changes the branch, which the mark in the body names.
func (c *creation) rename(branch string) error {
	warned := c.warnings
	c.branch, c.heir = branch, false
	err := c.dress()
	c.warnings = warned
	return err
}

// kindOf says what a commit at the tip of the branch is.
func (c *creation) kindOf(ctx context.Context, tip string) (branchKind, error) {
	if tip == c.snapshot.BaseCommit {
		return branchBare, nil
	}
	repo := c.snapshot.Repo
	info, err := c.resolution.Provider.ReadCommit(ctx, repo, tip)
	if err != nil {
		return branchTheirs, err
	}
	if !slices.Equal(info.Parents, []string{c.snapshot.BaseCommit}) || !slices.Equal(info.Paths, c.paths()) {
		return branchTheirs, nil
	}
	holds, err := branchHolds(ctx, c.resolution.Provider, repo, c.branch, c.changes.Changes())
	if err != nil || !holds {
		return branchTheirs, err
	}
	return branchOurs, nil
}

// askRemoteGatesAgain reads the pull requests of the repository once more and asks the gates that are about them.
func (c *creation) askRemoteGatesAgain(ctx context.Context) (reused *gitprovider.PullRequest, err error) {
	seen, err := c.History.Position(ctx)
	if err != nil {
		return nil, err
	}
	now, err := c.resolution.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{
		Repo: c.snapshot.Repo, Base: c.snapshot.Base, ClosedSince: c.started.Add(-c.Policy.Limits.Cooldown), Foreign: true,
	})
	if err != nil {
		return nil, err
	}
	if err := c.keepOurs(now); err != nil {
		return nil, err
	}
	c.seen, c.snapshot.Open, c.snapshot.Closed, c.snapshot.LastNumber = seen, now.Open, now.Closed, now.LastNumber
	c.snapshot.Foreign, c.snapshot.ForeignUnread = now.Foreign, now.ForeignUnread
	c.verdicts = slices.DeleteFunc(c.verdicts, func(v record.Verdict) bool { return v.Gate == record.GateDuplicate || v.Gate == record.GateCooldown })
	if reused, err = c.duplicateGate(ctx); err != nil || reused != nil {
		return reused, err
	}
	return nil, c.cooldownGate(ctx)
}
