package githubapp

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// made is a token that GitHub made.
type made struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// obtain has a token made. If GitHub refuses it for what an installation seen some time ago does not allow any more,
// the installation is looked up anew, once.
func (a *App) obtain(ctx context.Context, use transport.Use) (made, error) {
	for fresh := false; ; fresh = true {
		in, cached, err := a.installation(ctx, use.Owner, use.Repo, fresh)
		if err != nil {
			return made{}, err
		}
		out, outdated, err := a.request(ctx, in, use)
		if outdated && cached && !fresh {
			continue
		}
		return out, err
	}
}

// request asks for a token of an installation. outdated says that the error may come from the installation being
// another now.
func (a *App) request(ctx context.Context, in installation, use transport.Use) (out made, outdated bool, err error) {
	ask, err := wanted(in.Permissions, use)
	if err != nil {
		return out, true, err
	}
	u := transport.URL(a.api, "app", "installations", strconv.FormatInt(in.ID, 10), "access_tokens")
	body := map[string]any{"repositories": []string{use.Repo}, "permissions": ask}
	if in.repository != 0 {
		body = map[string]any{"repository_ids": []int64{in.repository}, "permissions": ask}
	}
	status, said, err := a.ask(ctx, http.MethodPost, u, body, &out)
	switch {
	case err != nil:
		return made{}, false, err
	case status == http.StatusNotFound:
		return made{}, true, fault.New(fault.NotFound,
			"the GitHub App is not installed for %s any more; install it there, with access "+
				"to %s", use.Owner, use.Repo)
	case status == http.StatusForbidden && forge.Mentions(said, "suspended"):
		return made{}, true, suspended(use.Owner)
	case status == http.StatusForbidden:
		return made{}, true, fault.New(fault.ProviderDisabled,
			"GitHub makes no token for the installation of the GitHub App for %s (403): %s; look at the installation's "+
				"settings, and at the owner's rules for apps", use.Owner, fault.Said(a.client.Scrub(said)))
	case status == http.StatusUnprocessableEntity:
		return made{}, true, fault.New(fault.ProviderDisabled,
			"GitHub makes no token for %s/%s: its installation of the GitHub App "+
				"leaves the repository out, or does not grant %v any more; look at the installation's settings", use.Owner,
			use.Repo,
			ask.list())
	case out.Token == "" || out.ExpiresAt.IsZero():
		return made{}, false, notGitHub(nil)
	}
	return out, false, nil
}
