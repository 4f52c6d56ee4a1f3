package config

import (
	"fmt"
	"regexp"
	"strings"
)

// GitHubApp is the GitHub App in whose name requests are made.
type GitHubApp struct {
	ID      string // the app's ID, or its client ID
	Key     string // its private key in PEM
	KeyFile string // where Key is from, so that it can be read again; "" if it is from a variable
}

// githubApp reads the variables of the app. They go together: one alone is a problem, since a token that is set besides may
// do more than the app, and is not taken in its stead.
func (e *env) githubApp() (app *GitHubApp, problem string) {
	id, key := e.get("GITHUB_APP_ID"), e.privateKey("GITHUB_APP_PRIVATE_KEY")
	e.rememberWhole(KeySecret(key))
	switch {
	case id == "" && key == "":
		return nil, ""
	case id == "":
		return nil, "GITHUB_APP_PRIVATE_KEY is set, and GITHUB_APP_ID is not"
	case key == "":
		return nil, "GITHUB_APP_ID is set, and GITHUB_APP_PRIVATE_KEY is not (nor is there a key in the file of GITHUB_APP_PRIVATE_KEY_FILE)"
	case !regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`).MatchString(id):
		return nil, "GITHUB_APP_ID is no ID of an app: a number, or the client ID"
	}
	if e.secret("GITHUB_TOKEN") != "" {
		e.warn("GITHUB_TOKEN is not used, since GITHUB_APP_ID is set: requests are made in the name of the app")
	}
	return &GitHubApp{ID: id, Key: key, KeyFile: e.secretFile("GITHUB_APP_PRIVATE_KEY")}, ""
}

func appForge(raw string, app *GitHubApp, problem string) Forge {
	if problem != "" {
		return Forge{Problem: problem}
	}
	u, err := parseBase(raw)
	if err != nil {
		return Forge{App: app, Problem: fmt.Sprintf("GITHUB_API_URL %s", err)}
	}
	return Forge{URL: u, App: app}
}

// KeySecret is a private key in PEM as it is looked for in texts: with its line breaks, which a variable may have as \n, so that
// what is the same in all keys can be told from what is secret.
func KeySecret(key string) string { return strings.ReplaceAll(key, `\n`, "\n") }
