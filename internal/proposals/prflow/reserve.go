package prflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

const (
	// waitForWinner bounds how long a caller waits for another one's proposal on the same files.
	waitForWinner = 20 * time.Second
	pollInterval  = 50 * time.Millisecond
)

// reserve takes the files, or finds who has them: an open pull request with the very same change is returned, another
// one is a refusal; what a dead process left is settled first, or taken over if it is the same change.
func (w *writer) reserve(ctx context.Context) (*sameChange, error) {
	clock := w.service.Clock
	deadline := clock.Now().Add(waitForWinner)
	for {
		taken, err := w.reserveWithinCaps(ctx)
		switch {
		case err != nil || taken == nil:
			return nil, err
		case taken.State == record.StateOpened:
			return w.takenBy(*taken)
		case w.settler.abandoned(*taken):
			if same, done, err := w.replace(ctx, *taken); err != nil || same != nil || done {
				return same, err
			}
			continue
		case clock.Now().After(deadline):
			e := fault.New(fault.LimitReached,
				"another proposal for these files is being written (request %s); try again shortly", taken.ID)
			e.RetryAfter = waitForWinner
			return nil, e
		}
		clock.Sleep(ctx, pollInterval)
		if ctx.Err() != nil {
			return nil, fault.From(ctx.Err())
		}
	}
}

// reserveWithinCaps reserves if the gate of the caps passes. What processes that ended have left in this repository is
// settled before it counts against a caller.
func (w *writer) reserveWithinCaps(ctx context.Context) (taken *record.Proposal, err error) {
	c := w.creation
	for _, last := range []bool{false, true} {
		claim := c.evidence.claim()
		claim.Admit = func(u record.Usage) error {
			c.evidence.usage = u
			_, err := c.judge(ctx, phaseReserve)
			return err
		}
		delete(c.verdicts, record.GateCaps)
		taken, err = w.service.Ledger.Reserve(ctx, c.proposal(record.StateReserved), claim)
		full := c.verdicts.denied(record.GateCaps) && c.evidence.usage.Pending > 0
		if last || !full || !w.settler.settleIn(ctx, w.provider.Name(), w.repo) {
			break
		}
	}
	return taken, err
}

// takenBy answers a caller whose files were taken by a proposal that was opened a moment ago.
func (w *writer) takenBy(winner record.Proposal) (*sameChange, error) {
	c := w.creation
	if winner.Digest == c.draft.digest {
		return &sameChange{pr: gitprovider.PullRequest{
			Number: winner.PRNumber, URL: winner.PRURL, Branch: winner.Branch, HeadCommit: winner.Commit,
			Base: winner.Base, State: gitprovider.StateOpen,
		}}, nil
	}
	if rev := c.evidence.revision; rev != nil && winner.PRNumber == rev.pr.Number {
		return nil, movedMeanwhile(winner.PRNumber)
	}
	return nil, c.denyDuplicate(winner.PRNumber, winner.PRURL, winner.Title, pathsOf(winner))
}

// replace handles an abandoned proposal that still holds the files. If it is the same change, this creation takes it
// over: it continues under the branch's name, so that late writes of the former process end up there and do not create
// a second one. Another change is settled first. done says that the files are reserved for this creation. If there is
// neither a pull request nor an error and done is false, the caller has to try again.
func (w *writer) replace(ctx context.Context, left record.Proposal) (same *sameChange, done bool, err error) {
	provider, err := w.settler.providerOf(left)
	if err != nil {
		return nil, false, err
	}
	if left.Digest == w.creation.draft.digest && provider.Name() == w.provider.Name() {
		w.service.Clock.Sleep(ctx, settleGrace)
		made, err := w.settler.made(ctx, provider, left)
		if err != nil {
			return nil, false, err
		}
		if !made {
			done, err := w.takeOver(ctx, left)
			return nil, done, err
		}
	}
	if err := w.settler.settle(ctx, left); err != nil {
		return nil, false, err
	}
	if err := w.avoidRemoved(ctx); err != nil {
		return nil, false, err
	}
	same, err = w.creation.judgePullsAgain(ctx)
	return same, false, err
}

// made reports whether what a proposal that was left should have become is there, or was undone.
func (s *settler) made(ctx context.Context, p gitprovider.Provider, left record.Proposal) (bool, error) {
	if left.Revises > 0 && len(left.Files) == 0 { // what it has begun to post is not ours to post again
		return left.PRNumber > 0, nil
	}
	if left.Revises > 0 {
		commit, err := s.revisionOf(ctx, p, left)
		return commit != "", err
	}
	pr, undone, err := s.find(ctx, p, left)
	return pr != nil || undone, err
}

// takeOver ends a proposal of the same change and reserves its files for this one, at once.
func (w *writer) takeOver(ctx context.Context, left record.Proposal) (done bool, err error) {
	c := w.creation
	own := c.draft.branch
	if err := w.rename(left.Branch); err != nil {
		return false, err
	}
	row := w.settler.row(left, record.OutcomeFailed, record.Progress{},
		fmt.Sprintf("taken over by request %s, which proposes the same", c.request.id))
	done, err = w.service.Ledger.Supersede(ctx, left, c.proposal(record.StateReserved), row)
	if err != nil || !done { // somebody else has settled it: its name is not ours to go on with
		return false, errors.Join(err, w.rename(own))
	}
	w.tookOver = true
	c.verdicts[record.GateCaps] = ruling{detail: "in the place of request " + left.ID + ", which counts no more"}
	return true, nil
}

// avoidRemoved takes another name than those whose branches we have begun to remove a short time ago: the removal may
// have been sent more than once, and arrive late.
func (w *writer) avoidRemoved(ctx context.Context) error {
	lateness := w.provider.Lateness()
	if lateness == 0 || w.creation.evidence.revision != nil {
		return nil
	}
	since := w.service.Clock.Now().Add(-lateness)
	removed, err := w.service.History.UndoneBranches(ctx, w.provider.Name(), w.repo.Owner, w.repo.Name, since)
	if err != nil || !slices.Contains(removed, w.creation.draft.branch) {
		return err
	}
	for _, name := range branchNames(&w.creation.request) {
		if !slices.Contains(removed, name) {
			return w.rename(name)
		}
	}
	return nil
}
