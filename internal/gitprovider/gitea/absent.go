package gitea

import (
	"context"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// switchedOff is the refusal of a repository that takes no pull requests, or nil. The server itself answers 404 then, to
// everything that is about them.
func (p *Provider) switchedOff(from *gitea.Repository, repo gitprovider.RepoRef) error {
	switch {
	case !from.HasPullRequests:
		return fault.New(fault.RepoNotAllowed, "pull requests are switched off for %s at %s; switch them on in its settings",
			repo, p.base.Host)
	case from.Mirror:
		return fault.New(fault.RepoNotAllowed, "%s at %s is a mirror, which takes no pull requests; propose to the repository "+
			"that it mirrors", repo, p.base.Host)
	}
	return nil
}

// noPulls says why the pull requests of a repository could not be listed: nil for one without a commit, which has none.
func (p *Provider) noPulls(ctx context.Context, repo gitprovider.RepoRef, err error) error {
	if isMissing(err) {
		if from, lookErr := p.repository(ctx, repo); lookErr == nil {
			if off := p.switchedOff(from, repo); off != nil || from.Empty {
				return off
			}
		}
	}
	return p.judge(err, repo, "")
}

// noPull says why a pull request could not be read.
func (p *Provider) noPull(ctx context.Context, repo gitprovider.RepoRef, number int, err error) error {
	if isMissing(err) {
		if from, lookErr := p.repository(ctx, repo); lookErr == nil {
			if off := p.switchedOff(from, repo); off != nil {
				return off
			}
		}
	}
	return p.judge(err, repo, pullName(number))
}
