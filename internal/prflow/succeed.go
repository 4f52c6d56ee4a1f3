package prflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// succeed deals with what holds the files and nobody works on any more. The same change is taken over: this creation goes
// on under the branch's name, so that whatever of the former one still arrives meets it there and makes no second. Another
// change is settled first. done says that the files are reserved for this creation; with neither a pull request, an error
// nor that the caller is to try again.
func (c *creation) succeed(ctx context.Context, left record.Proposal) (reused *gitprovider.PullRequest, done bool, err error) {
	provider, err := c.providerOf(left)
	if err != nil {
		return nil, false, err
	}
	same := left.Digest == c.digest && provider.Name() == c.resolution.Provider.Name()
	if same {
		c.Sleep(ctx, settleGrace)
		pr, undone, err := c.pullOf(ctx, provider, left)
		if err != nil {
			return nil, false, err
		}
		if pr == nil && !undone {
			done, err := c.takeOver(ctx, left)
			return nil, done, err
		}
	}
	if err := c.settle(ctx, left); err != nil {
		return nil, false, err
	}
	if err := c.avoidRemoved(ctx); err != nil {
		return nil, false, err
	}
	reused, err = c.askRemoteGatesAgain(ctx)
	return reused, false, err
}

// takeOver ends a proposal of the same change and reserves its files for this one, at once.
func (c *creation) takeOver(ctx context.Context, left record.Proposal) (done bool, err error) {
	own := c.branch
	if err := c.rename(left.Branch); err != nil {
		return false, err
	}
	a := c.settlement(left, record.OutcomeFailed, record.Progress{}, fmt.Sprintf("taken over by request %s, which proposes the same", c.requestID))
	done, err = c.Ledger.Supersede(ctx, left, c.proposal(record.StateReserved), a)
	if err != nil || !done { // somebody else has settled it: its name is not ours to go on with
		return false, errors.Join(err, c.rename(own))
	}
	c.heir = true
	c.rule(record.GateCaps, nil, "in the place of request "+left.ID+", which counts no more")
	return true, nil
}

// avoidRemoved takes another name than those whose branches we have begun to remove a short time ago: the removal may have
// been sent more than once, and arrive late.
func (c *creation) avoidRemoved(ctx context.Context) error {
	lateness := c.resolution.Provider.Lateness()
	if lateness == 0 {
		return nil
	}
	repo := c.snapshot.Repo
	removed, err := c.History.UndoneBranches(ctx, c.resolution.Provider.Name(), repo.Owner, repo.Name, c.Now().Add(-lateness))
	if err != nil || !slices.Contains(removed, c.branch) {
		return err
	}
	for _, name := range c.branchNames() {
		if !slices.Contains(removed, name) {
			return c.rename(name)
		}
	}
	return nil
}

// lateFor is how long it must still be waited before a proposal that was left can be undone: until what its process had sent
// cannot arrive any more.
func (s *Service) lateFor(p gitprovider.Provider, left record.Proposal) time.Duration {
	lateness := p.Lateness()
	if lateness == 0 {
		return 0
	}
	return left.CreatedAt.Add(writeTimeout + lateness).Sub(s.Now())
}

// lateError is why a proposal is not settled yet.
type lateError struct {
	until time.Time
	err   *fault.Error
}

// Error implements error.
func (e *lateError) Error() string { return e.err.Error() }

// Unwrap gives the fault.
func (e *lateError) Unwrap() error { return e.err }

func stillLate(left record.Proposal, wait time.Duration) *fault.Error {
	e := fault.New(fault.LimitReached, "an earlier proposal for these files (%q, request %s) got no clear answer from its provider, and "+
		"what it sent may still arrive; it is settled in %s at the latest, or at once by the identical call",
		clean(left.Title, maxTitle), left.ID, wait.Round(time.Second))
	e.RetryAfter = wait
	return e
}
