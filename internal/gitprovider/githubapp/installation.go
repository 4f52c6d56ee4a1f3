package githubapp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
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
	status, at, err := a.sendAsApp(ctx, http.MethodGet, transport.URL(a.api, "repos", owner, repo, "installation"), nil,
		&in)
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
		status, _, err := a.sendAsApp(ctx, http.MethodGet, u, nil, &in)
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
	_, lacks := tokenPermissions(in.Permissions, transport.Use{Owner: owner, Repo: repo, Write: true})
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
	status, _, err := a.sendAsApp(ctx, http.MethodGet, transport.URL(a.api, "app"), nil, &app)
	if err == nil && (status != http.StatusOK || app.Slug == "") {
		return notGitHub(nil)
	}
	return err
}

// apiVersion is the version of the REST API that the requests are written for.
const apiVersion = "2022-11-28"

// sendAsApp makes a request in the name of the app and decodes the answer of a success into out. words are the path
// where it was found after redirects, or what GitHub said: 403, 404 and 422 are for the caller to understand and no
// errors. Every other refusal is a *fault.Error. A token that is made twice does no harm, so each request may be
// repeated.
func (a *App) sendAsApp(ctx context.Context, method string, u *url.URL, body, out any) (status int, words string,
	err error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, "", forge.NotBuilt(err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(transport.Safe(ctx), method, u.String(), content)
	if err != nil {
		return 0, "", forge.NotBuilt(err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", apiVersion)
	resp, err := a.client.Client().Do(req)
	if err != nil {
		return 0, "", a.client.Failure(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", a.client.Failure(err)
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		if err := json.Unmarshal(raw, out); err != nil {
			return 0, "", notGitHub(err)
		}
		return resp.StatusCode, resp.Request.URL.Path, nil
	}
	said := githubMessage(raw)
	if resp.StatusCode == http.StatusUnauthorized {
		return 0, "", a.unsigned(resp, said)
	}
	if resp.StatusCode == http.StatusNotFound && strings.Contains(said, "Integration not found") {
		return 0, "", fault.New(fault.ProviderDisabled,
			"GitHub knows no app with the ID in GITHUB_APP_ID; check it, and GITHUB_API_URL")
	}
	if known := a.client.StatusFault(resp, said); known != nil {
		return 0, "", known
	}
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
		return resp.StatusCode, said, nil
	}
	return 0, "", notGitHub(nil)
}

// githubMessage returns GitHub's message, cleaned for quoting.
func githubMessage(raw []byte) string {
	var said struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &said) // without a message nothing is quoted
	return forge.Clean(said.Message)
}

// clockTolerance is the difference between two clocks up to which a refused signature is not attributed to them.
const clockTolerance = 30 * time.Second

// unsigned returns the fault for a signature that GitHub does not take: a key of another app, or a clock that is wrong.
func (a *App) unsigned(resp *http.Response, said string) error {
	advice := "check that GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY belong together, and that the key was not deleted at GitHub"
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		if off := a.now().Sub(at).Round(time.Second); off.Abs() > clockTolerance {
			advice = "the clock of this machine differs from GitHub's by " + off.String() + ": set it right"
		}
	}
	return fault.New(fault.ProviderDisabled, "GitHub does not take the signature of the GitHub App (401: %s); %s",
		fault.Said(a.client.Scrub(said)), advice)
}

func notGitHub(err error) error { return forge.NotItsAPI(err, "GitHub", "GITHUB_API_URL") }
