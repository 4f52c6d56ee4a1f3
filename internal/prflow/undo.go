package prflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// undo removes the branch of a proposal that was left, unless somebody has changed it, or it carries somebody else's pull
// request: then it is a person's now, and stays. It returns the proposal's own pull request, if that appeared meanwhile.
func (s *Service) undo(ctx context.Context, p gitprovider.Provider, left record.Proposal) (*gitprovider.PullRequest, error) {
	repo := gitprovider.RepoRef{Owner: left.Owner, Name: left.Repo}
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
	if err := s.Ledger.Advance(ctx, left.ID, record.Progress{State: state, Commit: left.Commit, Undone: true}); err != nil {
		return nil, err
	}
	if err := p.DeleteBranch(ctx, repo, left.Branch, tip); err != nil && fault.CodeOf(err) != fault.Conflict {
		return nil, err
	}
	if p.Lateness() == 0 {
		return nil, nil
	}
	left.Commit = tip
	found, _, err := s.pullOf(ctx, p, left)
	return found, err
}

func changesOf(left record.Proposal) []gitprovider.Change {
	var out []gitprovider.Change
	for _, f := range left.Files {
		if path, err := gitprovider.ParsePath(f.Path); err == nil {
			out = append(out, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		}
	}
	return out
}

// settleUndone ends a proposal whose pull request came to be after all, and was closed because we have removed its branch.
// That nobody has rejected it is noted in its body, too, for those who have other records.
func (s *Service) settleUndone(ctx context.Context, p gitprovider.Provider, left record.Proposal, pr gitprovider.PullRequest) error {
	key, err := s.Key()
	if err != nil {
		return err
	}
	repo := gitprovider.RepoRef{Owner: left.Owner, Name: left.Repo}
	reader := newMarkReader(key, left.Provider, repo)
	if m, isTrue := reader.read(pr); !isTrue || !m.Withdrawn {
		body, err := withdrawnBody(reader, pr.Body, pr.Branch,
			"Closed because Claude Ops has removed its branch: the server had not answered, and nobody has rejected this.")
		if err == nil {
			err = p.Withdraw(ctx, repo, gitprovider.Withdrawal{Number: pr.Number, Branch: pr.Branch, Head: pr.HeadCommit, Body: body})
		}
		if err != nil {
			s.Log.Warn("pull request not marked as withdrawn", "request_id", left.ID, "pr", pr.Number, "error", logText(s, err))
		}
	}
	return s.settleAs(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
		fmt.Sprintf("settled after its process ended: #%d was closed because its branch was removed; nobody has rejected it", pr.Number))
}

// undoBranch removes the branch of this creation if its tip is still ours. It reports whether nothing of it remains.
func (c *creation) undoBranch(ctx context.Context) bool {
	err := c.Ledger.Advance(ctx, c.requestID, record.Progress{State: record.StateCommitted, Undone: true})
	if err == nil {
		err = c.resolution.Provider.DeleteBranch(ctx, c.snapshot.Repo, c.branch, c.commit)
	}
	if err == nil || slices.Contains([]fault.Code{fault.Conflict, fault.NotFound}, fault.CodeOf(err)) {
		return true
	}
	c.Log.Error("branch not undone", "request_id", c.requestID, "branch", c.branch, "error", logText(c.Service, err))
	return false
}
