package github

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
)

const (
	urlVariable   = "GITHUB_API_URL"
	tokenVariable = "GITHUB_TOKEN" // #nosec G101: the name of a variable
	appVariable   = "GITHUB_APP_ID"
	keyVariable   = "GITHUB_APP_PRIVATE_KEY"

	// defaultAPI is GitHub's own API.
	defaultAPI = "https://api.github.com/"
)

// Driver is GitHub, github.com as well as Enterprise servers.
func Driver() forge.Driver {
	return forge.Driver{
		Name: Name,
		Variables: []forge.Variable{
			{Name: urlVariable, Meaning: "the API of GitHub Enterprise; unset means GitHub's own", Server: true},
			{Name: tokenVariable, Meaning: "token of GitHub; without it the provider is off", Secret: true, Server: true,
				Needed: true},
			{Name: appVariable, Meaning: "ID or client ID of a GitHub App to act as, instead of by a token", Server: true},
			{Name: keyVariable, Meaning: "private key of the GitHub App, in PEM", Secret: true, Server: true},
		},
		Read: readSettings, Hosts: hosts, New: fromSettings,
		Webhooks: forge.Source{
			Name: Name, Title: "GitHub",
			Signatures: []forge.Signature{{Header: "X-Hub-Signature-256", Prefix: "sha256="}},
			Headers:    []string{"X-GitHub-"},
			Events: []string{"push", "pull_request", "pull_request_review", "check_suite", "status", "issues",
				"issue_comment"},
		},
	}
}

func readSettings(e forge.Environment) forge.Settings {
	s := forge.AddressAndToken(e, urlVariable, defaultAPI, tokenVariable)
	app, err := readApp(e, s.Token)
	if app == nil && err == nil {
		return s
	}
	s = forge.Settings{App: app, Configured: true}
	if err == nil {
		s.URL, err = forge.ParseURL(urlVariable, cmp.Or(e.Get(urlVariable), defaultAPI))
	}
	if err != nil {
		s.Problem = err.Error()
	}
	return s
}

// readApp reads the variables of the app. They go together: one alone is a problem, since a token that is set besides
// may do more than the app, and is not taken in its stead.
func readApp(e forge.Environment, token forge.Secret) (*forge.App, error) {
	id, key := e.Get(appVariable), e.Secret(keyVariable)
	switch {
	case id == "" && key.Text == "":
		return nil, nil
	case id == "":
		return nil, fmt.Errorf("%s is set, and %s is not", keyVariable, appVariable)
	case key.Text == "":
		return nil, fmt.Errorf("%s is set, and %[2]s is not (nor is there a key in the file of %[2]s_FILE)", appVariable,
			keyVariable)
	case !regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`).MatchString(id):
		return nil, fmt.Errorf("%s is not an app ID: a number, or the client ID", appVariable)
	}
	if token.Text != "" {
		e.Warn("%s is not used, since %s is set: requests are made in the name of the app", tokenVariable, appVariable)
	}
	return &forge.App{ID: id, Key: key}, nil
}

// hosts returns github.com for api.github.com, the same with data residency (api.NAME.ghe.com), and an Enterprise
// Server's own host.
func hosts(api *url.URL) []string {
	if api == nil {
		return []string{"github.com"}
	}
	if web, isAPI := strings.CutPrefix(api.Hostname(), "api."); isAPI {
		return []string{web}
	}
	return forge.Hosts(api)
}

func fromSettings(s forge.Settings, r forge.Runtime) (gitprovider.Provider, *transport.Transport, error) {
	o := transport.Options{Name: Name, Variables: transport.Variables{Token: tokenVariable, Address: urlVariable},
		Scheme: "Bearer"}
	app, err := newApp(s, r)
	if err != nil {
		return nil, nil, err
	}
	if app != nil {
		o.Variables.Token, o.Credential = "the token of the GitHub App", app
	}
	client, err := r.Client(s, o)
	if err != nil {
		return nil, nil, err
	}
	return New(Options{API: s.URL, Client: client, CreateLabels: r.CreateLabels, App: app, Now: r.Now, Sleep: r.Sleep}),
		client, nil
}

// newApp returns the app in whose name requests are made, nil without one. Its tokens are redacted like those of the
// configuration.
func newApp(s forge.Settings, r forge.Runtime) (*githubapp.App, error) {
	if s.App == nil {
		return nil, nil
	}
	if _, err := githubapp.ParseKey(s.App.Key.Text); err != nil {
		return nil, fmt.Errorf("%s %w", keyVariable, err)
	}
	client, err := r.Client(s, transport.Options{
		Name: Name, Variables: transport.Variables{Token: keyVariable, Address: urlVariable}, Scheme: "Bearer",
		Credential: githubapp.NewSigner(s.App.ID, s.App.Key.Source(r.Learn), r.Now),
	})
	if err != nil {
		return nil, err
	}
	return githubapp.New(githubapp.Options{API: s.URL, Client: client, Now: r.Now, Learn: r.Learn}), nil
}
