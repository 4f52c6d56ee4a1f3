package prflow

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// removeBranch removes the branch of a proposal that was left, unless somebody has changed it, or it carries somebody
// else's pull request: then it is a person's now, and stays. It returns the proposal's own pull request, if that
// appeared meanwhile.
func (s *settler) removeBranch(ctx context.Context, p gitprovider.Provider,
	left record.Proposal) (*gitprovider.PullRequest, error) {
	repo := repoOf(left)
	pr, err := p.FindByHead(ctx, repo, left.Branch)
	if err != nil || pr != nil && pr.State == gitprovider.StateOpen {
		return nil, err
	}
	tip, err := p.BranchTip(ctx, repo, left.Branch)
	if err != nil || tip == "" {
		return nil, err
	}
	ours := tip == left.Commit || tip == left.BaseCommit // at the base commit it holds nothing of anybody's
	if !ours && left.Commit == "" {
		ours, err = branchHolds(ctx, p, repo, left.Branch, changesOf(left))
	}
	if err != nil || !ours {
		return nil, err
	}
	state := record.StateReserved
	if left.Commit != "" {
		state = record.StateCommitted
	}
	if err := s.ledger.Advance(ctx, left.ID, record.Progress{State: state, Commit: left.Commit,
		Undone: true}); err != nil {
		return nil, err
	}
	if err := p.DeleteBranch(ctx, repo, left.Branch, tip); err != nil && fault.CodeOf(err) != fault.Conflict {
		return nil, err
	}
	if p.Lateness() == 0 {
		return nil, nil
	}
	left.Commit = tip
	found, _, err := s.find(ctx, p, left)
	return found, err
}

func changesOf(left record.Proposal) []gitprovider.Change { return changesIn(left.Files) }

// changesIn returns the changes of the files whose paths are canonical.
func changesIn(files []gitprovider.FileChange) []gitprovider.Change {
	var out []gitprovider.Change
	for _, f := range files {
		if path, err := gitprovider.ParsePath(f.Path); err == nil {
			out = append(out, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		}
	}
	return out
}

// endUndone ends a proposal whose pull request turned out to exist, and was closed because we removed its branch. Its
// body also says that it was not rejected, for installations with other records.
func (s *settler) endUndone(ctx context.Context, p gitprovider.Provider, left record.Proposal,
	pr gitprovider.PullRequest) error {
	repo := repoOf(left)
	reader, err := s.marksOf(left.Provider, repo)
	if err != nil {
		return err
	}
	if m, isTrue := reader.read(pr); !isTrue || !m.Withdrawn {
		err := withdraw(ctx, p, repo, reader, pr,
			"Closed because Claude Ops has removed its branch: the server had not answered, and nobody has rejected this.")
		if err != nil {
			s.log.warn("pull request not marked as withdrawn", err, "request_id", left.ID, "pr", pr.Number)
		}
	}
	return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
		fmt.Sprintf("settled after its process ended: #%d was closed because its branch was removed; nobody has rejected it",
			pr.Number))
}

// withdraw closes a pull request. Its body says why, in words and by the mark, for everybody who asks the gate of the
// cooldown: with these records or with others.
func withdraw(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, marks markReader, pr gitprovider.PullRequest,
	reason string,
) error {
	body, err := withdrawnBody(marks, pr, reason)
	if err != nil {
		return err
	}
	return p.Withdraw(ctx, repo, gitprovider.Withdrawal{Number: pr.Number, Branch: pr.Branch, Head: pr.HeadCommit,
		Body: body})
}

// lateFor returns the remaining time before an abandoned proposal can be undone: until then, writes of its process may
// still arrive.
func (s *settler) lateFor(p gitprovider.Provider, left record.Proposal) time.Duration {
	lateness := p.Lateness()
	if lateness == 0 {
		return 0
	}
	return left.CreatedAt.Add(writeTimeout + lateness).Sub(s.clock.Now())
}

// lateError says why a proposal is not settled yet.
type lateError struct {
	until time.Time
	err   *fault.Error
}

// Error implements error.
func (e *lateError) Error() string { return e.err.Error() }

// Unwrap gives the fault.
func (e *lateError) Unwrap() error { return e.err }

func stillLate(left record.Proposal, wait time.Duration) *fault.Error {
	e := fault.New(fault.LimitReached,
		"an earlier proposal for these files (%q, request %s) got no clear answer from its provider, and "+
			"what it sent may still arrive; it is settled in %s at the latest, or at once by the identical call",
		clean(left.Title, maxTitle), left.ID, wait.Round(time.Second))
	e.RetryAfter = wait
	return e
}
