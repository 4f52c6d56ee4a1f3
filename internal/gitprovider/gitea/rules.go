package gitea

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ruledOut is the refusal (403) of a change to a branch for somebody who may write to the repository: then a rule for branches
// of this name or for files keeps it off, or a hook of the server's. nil means that the user may not write, or that it could
// not be looked at.
func (p *Provider) ruledOut(ctx context.Context, repo gitprovider.RepoRef, branch string, cause error) error {
	r := refusalOf(cause)
	if r == nil || r.isScope() || r.isAccount() || p.http.StatusFault(r.resp, r.quotable()) != nil { // as for coming too often
		return nil
	}
	from, err := p.repository(ctx, repo)
	if err != nil || from.Permissions == nil || !from.Permissions.Push {
		return nil
	}
	return fault.Wrap(cause, fault.RepoNotAllowed, "a rule of %s keeps the branch %s from being changed, although the user of %s "+
		"may write to the repository%s; in its settings, under branch protection, let that user push to %s, and leave the files "+
		"of proposals out of the protected file patterns", repo, branch, tokenVariable, saidBy(cause),
		gitprovider.BranchPrefix+"**")
}
