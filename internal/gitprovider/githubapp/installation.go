package githubapp

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// installationFresh is how long a cached installation is used.
const installationFresh = 10 * time.Minute

// installation is an installation of the app: for one owner, with what that owner granted.
type installation struct {
	ID      int64  `json:"id"`
	AppSlug string `json:"app_slug"`
	HTMLURL string `json:"html_url"` // its settings
	Account *struct {
		Login string `json:"login"`
	} `json:"account"`
	Permissions permissions `json:"permissions"`
	Selection   string      `json:"repository_selection"` // all or selected
	SuspendedAt *time.Time  `json:"suspended_at"`

	// repository is the id of the repository that was asked about, if GitHub redirected from a former name to it; else 0.
	repository int64
}

type cachedInstallation struct {
	installation
	until time.Time
}

// installation finds the installation that sees the repository. fresh asks GitHub even if it was asked lately.
func (a *App) installation(ctx context.Context, owner, repo string, fresh bool) (in installation, cached bool,
	err error) {
	k := keyOf(transport.Use{Owner: owner, Repo: repo}).repo
	if !fresh {
		if known, ok := a.installations.Get(k); ok && a.now().Before(known.until) {
			return known.installation, true, nil
		}
	}
	status, at, err := a.ask(ctx, http.MethodGet, transport.URL(a.api, "repos", owner, repo, "installation"), nil, &in)
	switch {
	case err != nil:
		return in, false, err
	case status == http.StatusNotFound:
		return in, false, a.notInstalled(ctx, owner, repo)
	case status == http.StatusForbidden:
		return in, false, fault.New(fault.ProviderDisabled,
			"GitHub does not let the GitHub App see its installation for %s (403): %s; look "+
				"at the app's and the installation's settings", owner, fault.Said(a.client.Scrub(at)))
	case in.ID == 0:
		return in, false, notGitHub(nil)
	case in.SuspendedAt != nil:
		return in, false, suspended(owner)
	}
	if _, id, moved := strings.Cut(strings.TrimSuffix(at, "/installation"), "/repositories/"); moved {
		in.repository, _ = strconv.ParseInt(id, 10, 64) // 0 if it is not a number: then the name is used
	}
	a.installations.Put(k, cachedInstallation{in, a.now().Add(installationFresh)})
	return in, false, nil
}

func suspended(owner string) *fault.Error {
	return fault.New(fault.ProviderDisabled,
		"the installation of the GitHub App for %s is suspended; have the owner end that in the "+
			"installation's settings", owner)
}

// Installed reports whether the app is installed for an organisation or a person. It asks GitHub each time.
// provider_disabled for an installation that is suspended.
func (a *App) Installed(ctx context.Context, owner string) (bool, error) {
	for _, u := range []*url.URL{
		transport.URL(a.api, "orgs", owner, "installation"), transport.URL(a.api, "users", owner, "installation"),
	} {
		var in installation
		status, _, err := a.ask(ctx, http.MethodGet, u, nil, &in)
		switch {
		case err != nil:
			return false, err
		case status == http.StatusNotFound:
			continue
		case in.SuspendedAt != nil:
			return true, suspended(owner)
		}
		return true, nil
	}
	return false, nil
}

// notInstalled tells why no installation sees a repository: the owner has none, or it leaves this repository out.
// GitHub answers both in the same way, so the owner's is asked for.
func (a *App) notInstalled(ctx context.Context, owner, repo string) error {
	switch installed, err := a.Installed(ctx, owner); {
	case err != nil:
		return err
	case installed:
		return leftOut(owner, repo)
	}
	return fault.New(fault.NotFound,
		"the GitHub App is not installed for %s, or GitHub has no such owner; install it there, with "+
			"access to %s", owner, repo)
}

func leftOut(owner, repo string) *fault.Error {
	return fault.New(fault.NotFound,
		"GitHub has no repository %s/%s, or the installation of the GitHub App for %s leaves it out; "+
			"check its name, or add it in the installation's settings", owner, repo, owner)
}

// Grant describes what an installation allows the app.
type Grant struct {
	Login       string   // the author that GitHub shows for what the app does: "NAME[bot]"
	Permissions []string // such as "contents: write", sorted
	All         bool     // of the owner's repositories, not of chosen ones
	Settings    string   // address of the page where the owner changes it
	CanPropose  bool     // the permissions are enough for pull requests
}

// Grant asks GitHub what the installation that sees a repository allows. Errors are those of Token.
func (a *App) Grant(ctx context.Context, owner, repo string) (Grant, error) {
	in, _, err := a.installation(ctx, owner, repo, true)
	if err != nil {
		return Grant{}, err
	}
	_, lacks := wanted(in.Permissions, transport.Use{Owner: owner, Repo: repo, Write: true})
	return Grant{
		Login: in.AppSlug + "[bot]", Permissions: in.Permissions.list(), All: in.Selection == "all", Settings: in.HTMLURL,
		CanPropose: lacks == nil,
	}, nil
}

// Ping asks GitHub for the app itself: whether it can be reached, and takes the signature.
func (a *App) Ping(ctx context.Context) error {
	var app struct {
		Slug string `json:"slug"`
	}
	status, _, err := a.ask(ctx, http.MethodGet, transport.URL(a.api, "app"), nil, &app)
	if err == nil && (status != http.StatusOK || app.Slug == "") {
		return notGitHub(nil)
	}
	return err
}
