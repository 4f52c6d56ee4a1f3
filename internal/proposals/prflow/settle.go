package prflow

import (
	"context"
	"errors"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// settle ends a proposal that its process left: if its pull request exists, it is recorded as opened; otherwise its
// branch is removed, if it still holds what that process wrote and nothing else. Only one settles at a time: nil also
// means that somebody else is at it. What cannot be settled now is left unsettled, for the next one.
func (s *settler) settle(ctx context.Context, left record.Proposal) error {
	ok, err := s.ledger.Adopt(ctx, left)
	if err != nil || !ok {
		return err
	}
	err = s.endAdopted(ctx, left)
	if err != nil {
		free := s.ledger.Advance(context.WithoutCancel(ctx), left.ID, record.Progress{State: record.StateUnsettled})
		err = errors.Join(err, free)
	}
	return err
}

func (s *settler) endAdopted(ctx context.Context, left record.Proposal) error {
	provider, err := s.providerOf(left)
	if err != nil {
		return err
	}
	s.clock.Sleep(ctx, settleGrace)
	if left.Revises > 0 {
		return s.endRevision(ctx, provider, left)
	}
	pr, undone, err := s.find(ctx, provider, left)
	switch {
	case err != nil:
		return err
	case pr != nil && pr.State == gitprovider.StateClosed && undone:
		return s.endUndone(ctx, provider, left, *pr)
	case pr != nil && pr.State == gitprovider.StateOpen:
		if ended, err := s.withdrawIfSecond(ctx, provider, left, *pr); err != nil || ended {
			return err
		}
		return s.endOpened(ctx, left, *pr, undone)
	case pr != nil:
		return s.endOpened(ctx, left, *pr, undone)
	}
	if wait := s.lateFor(provider, left); wait > 0 && !undone {
		return &lateError{until: s.clock.Now().Add(wait), err: stillLate(left, wait)}
	}
	found, err := s.removeBranch(ctx, provider, left)
	switch {
	case err != nil:
		return err
	case found != nil && found.State == gitprovider.StateClosed:
		return s.endUndone(ctx, provider, left, *found)
	case found != nil:
		return s.endOpened(ctx, left, *found, true)
	}
	return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
		"settled after its process ended: no pull request was opened and no branch of it remains")
}

// endOpened records the pull request. undone: what we have sent to remove it may still arrive.
func (s *settler) endOpened(ctx context.Context, left record.Proposal, pr gitprovider.PullRequest, undone bool) error {
	return s.end(ctx, left, record.OutcomeOpened, record.Progress{
		State: record.StateOpened, Commit: pr.HeadCommit, PRNumber: pr.Number, PRURL: pr.URL, Undone: undone,
	}, "settled after its process ended: the pull request exists")
}
