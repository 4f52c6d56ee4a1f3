package prflow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
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
// one is a refusal; what a dead process left is settled first.
func (c *creation) reserve(ctx context.Context) (*gitprovider.PullRequest, error) {
	deadline := c.Now().Add(waitForWinner)
	for {
		taken, err := c.reserveWithinCaps(ctx)
		switch {
		case err != nil || taken == nil:
			return nil, err
		case taken.State == StateOpened:
			return c.lostTo(*taken)
		case c.abandoned(*taken):
			if err := c.settle(ctx, *taken); err != nil {
				return nil, err
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
func (s *Service) abandoned(p Proposal) bool {
	live := p.State == StateReserved || p.State == StateCommitted
	old := p.Holder == "" && s.Now().Sub(p.CreatedAt) > lease
	return p.State == StateUnsettled || live && (p.Abandoned || old)
}

// lostTo answers a caller whose files were taken by a proposal that was opened a moment ago.
func (c *creation) lostTo(winner Proposal) (*gitprovider.PullRequest, error) {
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
	return nil, c.deny(GateDuplicate, duplicateOf(winner.PRNumber, winner.PRURL, winner.Title, c.overlap(theirs)))
}

// settle ends a proposal that its process left: if its pull request exists, it is recorded as opened; otherwise its
// branch is removed, if it still holds what that process wrote and nothing else. Only one settles at a time: nil also
// means that somebody else is at it. What cannot be settled now is left unsettled, for the next one.
func (s *Service) settle(ctx context.Context, left Proposal) error {
	ok, err := s.Ledger.Adopt(ctx, left)
	if err != nil || !ok {
		return err
	}
	err = s.settleAdopted(ctx, left)
	if err != nil {
		free := s.Ledger.Advance(context.WithoutCancel(ctx), left.ID, Progress{State: StateUnsettled})
		err = errors.Join(err, free)
	}
	return err
}

func (s *Service) settleAdopted(ctx context.Context, left Proposal) error {
	resolution, err := s.providerOf(left)
	if err != nil {
		return err
	}
	s.Sleep(ctx, settleGrace)
	repo := gitprovider.RepoRef{Owner: left.Owner, Name: left.Repo}
	pr, err := resolution.FindByHead(ctx, repo, left.Branch)
	if err != nil {
		return err
	}
	theirs, err := s.isOf(left, pr)
	if err != nil {
		return err
	}
	if theirs {
		return s.settleAs(ctx, left, OutcomeOpened, Progress{
			State: StateOpened, Commit: pr.HeadCommit, PRNumber: pr.Number, PRURL: pr.URL,
		}, "settled after its process ended: the pull request exists")
	}
	if pr == nil || pr.State != gitprovider.StateOpen { // else the branch carries somebody else's pull request
		if err := s.removeBranch(ctx, resolution, repo, left); err != nil {
			return err
		}
	}
	return s.settleAs(ctx, left, OutcomeFailed, Progress{State: StateFailed},
		"settled after its process ended: no pull request was opened and no branch of it remains")
}

// isOf reports whether a pull request with the proposal's branch is the proposal's own: by its commit, or by its mark. The
// name of the branch alone says nothing, since an earlier proposal, or one that raced, may have used it.
func (s *Service) isOf(left Proposal, pr *gitprovider.PullRequest) (bool, error) {
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

func (s *Service) providerOf(left Proposal) (gitprovider.Provider, error) {
	for _, entry := range s.Registry.Entries() {
		if entry.Name == left.Provider && entry.Provider != nil {
			return entry.Provider, nil
		}
	}
	return nil, fault.New(fault.ProviderDisabled,
		"a proposal left unfinished at the provider %s (request %s) holds these files, and that provider is not enabled",
		left.Provider, left.ID)
}

// removeBranch deletes the branch of a proposal that was left, unless somebody has changed it: then it is a person's
// now, and stays.
func (s *Service) removeBranch(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, left Proposal) error {
	tip, err := p.BranchTip(ctx, repo, left.Branch)
	if err != nil || tip == "" {
		return err
	}
	ours := tip == left.Commit || tip == left.BaseCommit // at the base commit it holds nothing of anybody's
	if !ours && left.Commit == "" {
		ours, err = branchHolds(ctx, p, repo, left.Branch, changesOf(left))
		if err != nil {
			return err
		}
	}
	if !ours {
		return nil
	}
	err = p.DeleteBranch(ctx, repo, left.Branch, tip)
	if fault.CodeOf(err) == fault.Conflict {
		return nil
	}
	return err
}

func changesOf(left Proposal) []gitprovider.Change {
	var out []gitprovider.Change
	for _, f := range left.Files {
		if path, err := gitprovider.ParsePath(f.Path); err == nil {
			out = append(out, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		}
	}
	return out
}

func (s *Service) settleAs(ctx context.Context, left Proposal, outcome Outcome, to Progress, message string) error {
	now := s.Now()
	attempt := Attempt{
		Time: now, RequestID: left.ID, Door: left.Door, Caller: left.Caller, Tier: left.Tier, Action: ActionSettle, Session: left.Session,
		Provider: left.Provider, Owner: left.Owner, Repo: left.Repo, Base: left.Base, Branch: left.Branch,
		Title: left.Title, Digest: left.Digest, Outcome: outcome, Message: message,
		PRNumber: to.PRNumber, PRURL: to.PRURL, Duration: now.Sub(left.CreatedAt),
	}
	for _, f := range left.Files {
		attempt.Paths = append(attempt.Paths, f.Path)
	}
	if text := RedirectNote(left.Body); text != "" {
		attempt.Verdicts = []Verdict{{Gate: GateRepository, Ruling: Pass, Warnings: []string{text}}}
	}
	err := s.Ledger.Finish(ctx, left.ID, to, attempt)
	if fault.CodeOf(err) == fault.Conflict { // somebody else settled it meanwhile
		return nil
	}
	return err
}

// errUnsettled marks a failure after which nobody knows what the provider holds.
var errUnsettled = errors.New("what the provider holds is unknown")

func unsettled(err error) error {
	e := *fault.From(err)
	e.Cause = errors.Join(errUnsettled, e.Cause)
	return &e
}

// abandon ends a reserved proposal that failed, undoing the branch if there is one, and records the attempt. What cannot
// be settled now stays reserved as unsettled, for the next request on these files.
func (c *creation) abandon(ctx context.Context, failure error) error {
	e := fault.From(failure)
	clean := !errors.Is(e, errUnsettled)
	if clean && c.commit != "" {
		clean = c.undoBranch(ctx)
	}
	if !clean {
		if err := c.Ledger.Advance(ctx, c.requestID, Progress{State: StateUnsettled, Commit: c.commit}); err != nil {
			c.Log.Error("unsettled proposal not marked", "request_id", c.requestID, "error", logText(c.Service, err))
		}
		return e
	}
	attempt := c.attempt(OutcomeOf(e), e)
	if err := c.Ledger.Finish(ctx, c.requestID, Progress{State: StateFailed}, attempt); err != nil {
		c.Log.Error("failed proposal not recorded", "request_id", c.requestID, "error", logText(c.Service, err))
		return e
	}
	c.recorded = true
	return e
}

// undoBranch removes the branch of this creation if its tip is still ours. It reports whether nothing of it remains.
func (c *creation) undoBranch(ctx context.Context) bool {
	err := c.resolution.Provider.DeleteBranch(ctx, c.snapshot.Repo, c.branch, c.commit)
	if err == nil || slices.Contains([]fault.Code{fault.Conflict, fault.NotFound}, fault.CodeOf(err)) {
		return true
	}
	c.Log.Error("branch not undone", "request_id", c.requestID, "branch", c.branch, "error", logText(c.Service, err))
	return false
}
