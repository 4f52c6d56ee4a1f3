package github

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// about notes which repository the requests made with the context are about; every exported method does so first. Whether a
// request may change something is noted where it is sent.
func about(ctx context.Context, repo gitprovider.RepoRef) context.Context {
	return transport.For(ctx, transport.Use{Owner: repo.Owner, Repo: repo.Name})
}

// tokenName is what messages call the token: the variable that holds it, or whose it is.
func tokenName(app *githubapp.App) string {
	if app != nil {
		return "the GitHub App"
	}
	return "GITHUB_TOKEN"
}
