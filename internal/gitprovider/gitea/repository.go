package gitea

import (
	"context"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// repository reads a repository. After a rename the server redirects, and the answer has the name of now.
func (a *api) repository(ctx context.Context, ref gitprovider.RepoRef) (*gitea.Repository, error) {
	repo, err := call(ctx, a, func(c *gitea.Client) (*gitea.Repository, *gitea.Response, error) {
		return c.GetRepo(ref.Owner, ref.Name)
	})
	if err == nil && repo.Name == "" {
		return nil, a.wrongAnswer("the repository", ref)
	}
	return repo, err
}

// switchedOff returns the refusal of a repository that takes no pull requests, or nil. The server itself answers 404
// then, to everything that is about them.
func (a *api) switchedOff(from *gitea.Repository, repo gitprovider.RepoRef) error {
	switch {
	case !from.HasPullRequests:
		return fault.New(fault.RepoNotAllowed, "pull requests are switched off for %s at %s; switch them on in its settings",
			repo, a.base.Host)
	case from.Mirror:
		return fault.New(fault.RepoNotAllowed,
			"%s at %s is a mirror, which takes no pull requests; propose to the repository "+
				"that it mirrors", repo, a.base.Host)
	}
	return nil
}

// toFaultOfPull is toFault for pull requests. empty says that a repository without a commit, which has no pull
// requests, is not an error.
func (a *api) toFaultOfPull(ctx context.Context, err error, repo gitprovider.RepoRef, what string, empty bool) error {
	if isMissing(err) {
		if from, lookErr := a.repository(ctx, repo); lookErr == nil {
			if off := a.switchedOff(from, repo); off != nil || empty && from.Empty {
				return off
			}
		}
	}
	return a.toFault(err, repo, what)
}

// forbiddenByRule returns the refusal (403) of a change to a branch for somebody who may write to the repository: then
// a rule for branches of this name or for files keeps it off, or a hook of the server's. nil means that the user may
// not write, or that it could not be looked at.
func (a *api) forbiddenByRule(ctx context.Context, repo gitprovider.RepoRef, branch string, cause error) error {
	r := refused(cause)
	// as for coming too often
	if r == nil || r.isScope() || r.isAccount() || a.http.StatusFault(r.resp, r.quotable()) != nil {
		return nil
	}
	from, err := a.repository(ctx, repo)
	if err != nil || from.Permissions == nil || !from.Permissions.Push {
		return nil
	}
	return fault.Wrap(cause, fault.RepoNotAllowed,
		"a rule of %s keeps the branch %s from being changed, although the user of %s "+
			"may write to the repository%s; in its settings, under branch protection, let that user push to %s, and leave the files "+
			"of proposals out of the protected file patterns", repo, branch, tokenVariable, r.said(), gitprovider.BranchPrefix+
			"**")
}
