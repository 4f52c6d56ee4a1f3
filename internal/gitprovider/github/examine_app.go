package github

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// appIdentity is whom GitHub shows as the author of what the app does, and what the installation that sees the repository
// grants.
func (p *Provider) appIdentity(ctx context.Context, repo gitprovider.RepoRef) (identity, error) {
	grant, err := p.app.Grant(ctx, repo.Owner, repo.Name)
	if err != nil {
		return identity{}, err
	}
	return identity{login: grant.Login, grant: &grant}, nil
}

// installation is what Examine tells of an app's installation; nil for a user's token.
func (i identity) installation() *gitprovider.Installation {
	if i.grant == nil {
		return nil
	}
	return &gitprovider.Installation{
		Permissions: i.grant.Permissions, AllRepositories: i.grant.All, Settings: i.grant.Settings,
	}
}
