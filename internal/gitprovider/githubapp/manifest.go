package githubapp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Manifest describes an app that a person makes in a browser (docs.github.com, "Registering a GitHub App from a
// manifest").
type Manifest struct {
	Name        string      `json:"name"` // the person can change it; unique at GitHub, at most MaxName characters
	URL         string      `json:"url"`
	RedirectURL string      `json:"redirect_url"` // where GitHub sends the browser with the code
	Public      bool        `json:"public"`
	Hook        hook        `json:"hook_attributes"`
	Permissions permissions `json:"default_permissions"`
	Events      []string    `json:"default_events"`
}

type hook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// MaxName bounds the name of an app, in characters.
const MaxName = 34

// homepage is the page about the app for people who see it.
const homepage = "https://github.com/claudeops/claudeops"

// NewManifest describes an app with the permissions that Claude Ops needs, and no webhook. members adds the one that
// lets requests name teams as reviewers.
func NewManifest(name, redirect string, members bool) Manifest {
	p := required(transport.Use{Write: true, Members: members})
	p["metadata"] = "read"
	for _, optional := range optional(transport.Use{}) {
		p[optional] = "read"
	}
	return Manifest{
		Name: name[:min(len(name), MaxName)], URL: homepage, RedirectURL: redirect, Hook: hook{URL: homepage},
		Permissions: p, Events: []string{},
	}
}

// NewAppPage returns the address to which a browser posts the manifest: settings of the organisation, or of the person
// if it is "". GitHub gives the state back with the code. web is the address of GitHub's pages.
func NewAppPage(web *url.URL, organisation, state string) *url.URL {
	parts := []string{"settings", "apps", "new"}
	if organisation != "" {
		parts = append([]string{"organizations", organisation}, parts...)
	}
	u := transport.URL(web, parts...)
	u.RawQuery = url.Values{"state": {state}}.Encode()
	return u
}

// Registered is an app that GitHub has made from a manifest.
type Registered struct {
	ID   int64  `json:"id"`
	Slug string `json:"slug"`
	Page string `json:"html_url"` // where people see the app
	Key  string `json:"pem"`      // the private key, which GitHub shows this once
}

// InstallPage returns the page where the app's owner installs it.
func (r Registered) InstallPage() string { return r.Page + "/installations/new" }

// Exchange gets the app for the code that GitHub has sent the browser back with. client carries no token. A code is
// good once, for an hour; it is taken out of logs and errors. Errors are not_found for a code that GitHub does not know
// (any more), else those of the client.
func Exchange(ctx context.Context, client *transport.Transport, api *url.URL, code string) (Registered, error) {
	client.Learn(code)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		transport.URL(api, "app-manifests", code, "conversions").String(), nil)
	if err != nil {
		return Registered{}, forge.NotBuilt(err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", apiVersion)
	resp, err := client.Client().Do(req)
	if err != nil {
		return Registered{}, client.Failure(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Registered{}, client.Failure(err)
	}
	var made Registered
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusUnprocessableEntity:
		return made, fault.New(fault.NotFound,
			"GitHub does not know the code that the browser came back with; it is good once, for an hour. Make the app again")
	case resp.StatusCode != http.StatusCreated:
		if known := client.StatusFault(resp, githubMessage(raw)); known != nil {
			return made, known
		}
		return made, notGitHub(nil)
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return Registered{}, notGitHub(nil) // the error could quote the key
	}
	page, err := url.Parse(made.Page)
	if _, badKey := ParseKey(made.Key); badKey != nil || made.ID == 0 || err != nil || page.Host == "" {
		return Registered{}, notGitHub(nil)
	}
	return made, nil
}
