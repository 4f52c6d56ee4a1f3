package githubapp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// apiVersion is the version of the REST API that the requests are written for.
const apiVersion = "2022-11-28"

// ask makes a request in the name of the app and decodes the answer of a success into out. words are the path where it
// was found after redirects, or what GitHub said: 403, 404 and 422 are for the caller to understand and no errors.
// Every other refusal is a *fault.Error. A token that is made twice does no harm, so each request may be repeated.
func (a *App) ask(ctx context.Context, method string, u *url.URL, body, out any) (status int, words string, err error) {
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
	said := message(raw)
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

// message returns GitHub's message, cleaned for quoting.
func message(raw []byte) string {
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
