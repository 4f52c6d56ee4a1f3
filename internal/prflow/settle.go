package prflow

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

const (
	// lease is how long a reservation counts as being worked on if the store does not know its holder. It is longer than
	// writeTimeout, so a process that lives has finished or given up by then.
	lease = writeTimeout + 30*time.Second
	// waitForWinner bounds how long a caller waits for another one's proposal on the same files.
	waitForWinner = 20 * time.Second
	pollInterval  = 50 * time.Millisecond
	// settleGrace is how long a settlement waits before it looks: what a killed process had just sent may still arrive.
	settleGrace = 250 * time.Millisecond
)

// reserve takes the paths, or finds who has them: an open pull request with the very same change is returned, another
// one is a refusal; what a dead process left is settled first, or taken over if it is the same change.
func (c *creation) reserve(ctx context.Context) (*gitprovider.PullRequest, error) {
	deadline := c.Now().Add(waitForWinner)
	for {
		taken, err := c.reserveWithinCaps(ctx)
		switch {
		case err != nil || taken == nil:
			return nil, err
		case taken.State == record.StateOpened:
			return c.lostTo(*taken)
		case c.abandoned(*taken):
			if reused, done, err := c.succeed(ctx, *taken); err != nil || reused != nil || done {
				return reused, err
			}
			continue
		case c.Now().After(deadline):
			e := fault.New(fault.LimitReached, "another proposal for these files is being written (request %s); try again shortly", taken.ID)
			e.RetryAfter = waitForWinner
			return nil, e
		}
		c.Sleep(ctx, pollInterval)
		if ctx.Err() != nil {
			return nil, fault.From(ctx.Err())
		}
	}
}

// abandoned reports whether nobody works on a proposal that holds a reservation any more. A process that lives gives up
// within writeTimeout by itself, so its age counts only for a proposal whose holder is not known.
func (s *Service) abandoned(p record.Proposal) bool {
	live := p.State == record.StateReserved || p.State == record.StateCommitted
	old := p.Holder == "" && s.Now().Sub(p.CreatedAt) > lease
	return p.State == record.StateUnsettled || live && (p.Abandoned || old)
}

// lostTo answers a caller whose files were taken by a proposal that was opened a moment ago.
func (c *creation) lostTo(winner record.Proposal) (*gitprovider.PullRequest, error) {
	if winner.Digest == c.digest {
		return &gitprovider.PullRequest{
			Number: winner.PRNumber, URL: winner.PRURL, Branch: winner.Branch, HeadCommit: winner.Commit,
			Base: winner.Base, State: gitprovider.StateOpen,
		}, nil
	}
	var theirs []string
	for _, f := range winner.Files {
		theirs = append(theirs, f.Path)
	}
	return nil, c.deny(record.GateDuplicate, duplicateOf(winner.PRNumber, winner.PRURL, winner.Title, c.overlap(theirs)))
}

// settle ends a proposal that its process left: if its pull request exists, it is recorded as opened; otherwise its
// branch is removed, if it still holds what that process wrote and nothing else. Only one settles at a time: nil also
// means that somebody else is at it. What cannot be settled now is left unsettled, for the next one.
func (s *Service) settle(ctx context.Context, left record.Proposal) error {
	ok, err := s.Ledger.Adopt(ctx, left)
	if err != nil || !ok {
		return err
	}
	err = s.settleAdopted(ctx, left)
	if err != nil {
		free := s.Ledger.Advance(context.WithoutCancel(ctx), left.ID, record.Progress{State: record.StateUnsettled})
		err = errors.Join(err, free)
	}
	return err
}

func (s *Service) settleAdopted(ctx context.Context, left record.Proposal) error {
	provider, err := s.providerOf(left)
	if err != nil {
		return err
	}
	s.Sleep(ctx, settleGrace)
	pr, undone, err := s.pullOf(ctx, provider, left)
	switch {
	case err != nil:
		return err
	case pr != nil && pr.State == gitprovider.StateClosed && undone:
		return s.settleUndone(ctx, provider, left, *pr)
	case pr != nil:
		return s.settleOpened(ctx, left, *pr, undone)
	}
	if wait := s.lateFor(provider, left); wait > 0 && !undone {
		return &lateError{until: s.Now().Add(wait), err: stillLate(left, wait)}
	}
	found, err := s.undo(ctx, provider, left)
	switch {
	case err != nil:
		return err
	case found != nil && found.State == gitprovider.StateClosed:
		return s.settleUndone(ctx, provider, left, *found)
	case found != nil:
		return s.settleOpened(ctx, left, *found, true)
	}
	return s.settleAs(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
		"settled after its process ended: no pull request was opened and no branch of it remains")
}

// pullOf finds the pull request of a proposal that was left, nil if there is none, and says whether we have begun to undo
// that proposal.
func (s *Service) pullOf(ctx context.Context, p gitprovider.Provider, left record.Proposal) (
	pr *gitprovider.PullRequest, undone bool, err error) {
	if undone, err = s.History.Undone(ctx, left.ID); err != nil {
		return nil, false, err
	}
	pr, err = p.FindByHead(ctx, gitprovider.RepoRef{Owner: left.Owner, Name: left.Repo}, left.Branch)
	if err != nil || pr == nil {
		return nil, undone, err
	}
	ours, err := s.isOf(left, pr)
	if err != nil || !ours {
		return nil, undone, err
	}
	return pr, undone, nil
}

// settleOpened records the pull request. undone: what we have sent to remove it may still arrive.
func (s *Service) settleOpened(ctx context.Context, left record.Proposal, pr gitprovider.PullRequest, undone bool) error {
	return s.settleAs(ctx, left, record.OutcomeOpened, record.Progress{
		State: record.StateOpened, Commit: pr.HeadCommit, PRNumber: pr.Number, PRURL: pr.URL, Undone: undone,
	}, "settled after its process ended: the pull request exists")
}

// isOf reports whether a pull request with the proposal's branch is the proposal's own: by its commit, or by its mark. The
// name of the branch alone says nothing, since an earlier proposal, or one that raced, may have used it.
func (s *Service) isOf(left record.Proposal, pr *gitprovider.PullRequest) (bool, error) {
	if pr == nil || left.Commit != "" && pr.HeadCommit == left.Commit {
		return pr != nil, nil
	}
	key, err := s.Key()
	if err != nil {
		return false, err
	}
	repo := gitprovider.RepoRef{Owner: left.Owner, Name: left.Repo}
	m, isTrue := newMarkReader(key, left.Provider, repo).read(*pr)
	return isTrue && m.Request == left.ID, nil
}

func (s *Service) providerOf(left record.Proposal) (gitprovider.Provider, error) {
	for _, entry := range s.Registry.Entries() {
		if entry.Name == left.Provider && entry.Provider != nil {
			return entry.Provider, nil
		}
	}
	return nil, fault.New(fault.ProviderDisabled,
		"a proposal left unfinished at the provider %s (request %s) holds these files, and that provider is not enabled",
		left.Provider, left.ID)
}

func (s *Service) settleAs(ctx context.Context, left record.Proposal, outcome record.Outcome, to record.Progress, message string) error {
	err := s.Ledger.Finish(ctx, left.ID, to, s.settlement(left, outcome, to, message))
	if fault.CodeOf(err) == fault.Conflict { // somebody else settled it meanwhile
		return nil
	}
	return err
}

// settlement is the audit's line for what became of a proposal that was left.
func (s *Service) settlement(left record.Proposal, outcome record.Outcome, to record.Progress, message string) record.Attempt {
	now := s.Now()
	attempt := record.Attempt{
		Time: now, RequestID: left.ID, Door: left.Door, Caller: left.Caller, Tier: left.Tier, Action: record.ActionSettle, Session: left.Session,
		Provider: left.Provider, Owner: left.Owner, Repo: left.Repo, Base: left.Base, Branch: left.Branch,
		Title: left.Title, Digest: left.Digest, Outcome: outcome, Message: message,
		PRNumber: to.PRNumber, PRURL: to.PRURL, Duration: now.Sub(left.CreatedAt),
	}
	for _, f := range left.Files {
		attempt.Paths = append(attempt.Paths, f.Path)
	}
	if text := RedirectNote(left.Body); text != "" {
		attempt.Verdicts = []record.Verdict{{Gate: record.GateRepository, Ruling: record.Pass, Warnings: []string{text}}}
	}
	return attempt
}

// abandon ends a reserved proposal that failed. After a definite failure the branch is undone if there is one, and the
// attempt is recorded. After an ambiguous one nothing is undone, since what was sent may still arrive: the proposal stays
// unsettled and keeps its files, and the answer says how it is settled.
func (c *creation) abandon(ctx context.Context, failure error) error {
	e := fault.From(failure)
	if !fault.CodeOf(e).Ambiguous() || c.nothingLate {
		if c.commit == "" || c.undoBranch(ctx) {
			return e // the record of the attempt ends the proposal
		}
	} else {
		e = notKnown(e)
	}
	c.leaveUnsettled(ctx)
	return e
}

// leaveUnsettled keeps the files of a proposal of which nobody knows how far it got, until it is settled.
func (c *creation) leaveUnsettled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout) // the time for writing may be over
	defer cancel()
	c.reserved = false
	if err := c.Ledger.Advance(ctx, c.requestID, record.Progress{State: record.StateUnsettled, Commit: c.commit}); err != nil {
		c.Log.Error("unsettled proposal not marked", "request_id", c.requestID, "error", logText(c.Service, err))
	}
}

// notKnown tells a caller what to do after a failure that leaves open what the provider has done.
func notKnown(e *fault.Error) *fault.Error {
	out := *e
	out.Message += ". What it has done is not known yet, and nothing was undone: make the identical call again, which is safe " +
		"and settles this; it makes no second pull request"
	if out.RetryAfter == 0 {
		out.RetryAfter = retryUnsettled
	}
	return &out
}

// retryUnsettled is when a caller is told to call again after a failure that nobody knows the meaning of.
const retryUnsettled = 10 * time.Second
