package local

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// BranchTip implements gitprovider.Provider. It waits for writes that are under way, those of a process that was killed
// meanwhile included: what it answers does not change by itself any more.
func (p *Provider) BranchTip(ctx context.Context, ref gitprovider.RepoRef, branch string) (string, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return "", err
	}
	mine, err := takeTurn(ctx, repo)
	if err != nil {
		return "", err
	}
	defer mine.end()
	have, err := p.refs(ctx, repo)
	return have.tips[branch], err
}

// DeleteBranch implements gitprovider.Provider. Beside the codes of the port: invalid_argument for a branch that is not
// one of ours, conflict for the branch that HEAD names, since its work tree would lose its history.
func (p *Provider) DeleteBranch(ctx context.Context, ref gitprovider.RepoRef, branch, tip string) error {
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	if !isID(tip) {
		return fault.New(fault.InvalidArgument, "the expected commit of the branch %s is not an object id", branch)
	}
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	have, err := p.refs(ctx, repo)
	switch {
	case err != nil:
		return err
	case have.tips[branch] == "":
		return nil
	case have.tips[branch] != tip:
		return fault.New(fault.Conflict, "the branch %s has moved since, so it was not deleted; somebody has added to it",
			branch)
	case have.head == branch:
		return fault.New(fault.Conflict, "the branch %s is checked out, so it was not deleted; check out another branch "+
			"first", branch)
	}
	return p.removeBranch(ctx, repo, branch, tip)
}

// removeBranch deletes a branch if its tip is still the given commit. That it is gone already is no error.
func (p *Provider) removeBranch(ctx context.Context, repo *repository, branch, tip string) error {
	t := &transaction{}
	t.remove(branch, tip)
	refused := p.transact(ctx, repo, t, "claude-ops: removed")
	if refused == nil {
		return nil
	}
	have, err := p.refs(ctx, repo)
	switch {
	case err != nil:
		return refused
	case have.tips[branch] == "":
		return nil
	case have.tips[branch] != tip:
		return fault.Wrap(refused, fault.Conflict,
			"the branch %s has moved since, so it was not deleted; somebody has added to it", branch)
	}
	return refused
}
