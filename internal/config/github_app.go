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
	id, key := e.get("GITHUB_APP_ID"), e.secret("GITHUB_APP_PRIVATE_KEY")
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

// minKeyLine is the length in bytes from which a line of a private key is looked for by itself: shorter ones may be found in
// any text.
const minKeyLine = 32

// KeySecrets are the parts of a private key in PEM that must not appear in a text: all of it, and its lines. Its first and
// last line are in every key and in none of them.
func KeySecrets(key string) []string {
	if key == "" {
		return nil
	}
	out := []string{key}
	for _, line := range strings.Fields(strings.ReplaceAll(key, `\n`, "\n")) {
		if len(line) >= minKeyLine {
			out = append(out, line)
		}
	}
	return out
}

// forgeSecrets are the tokens and keys for the forges. A token that is not used, since there is an app, is one all the same.
func (e *env) forgeSecrets(github, gitea Forge) []string {
	out := secretValues(github.Token, gitea.Token)
	if github.Token == "" {
		out = append(out, secretValues(e.secret("GITHUB_TOKEN"))...)
	}
	return append(out, KeySecrets(e.secret("GITHUB_APP_PRIVATE_KEY"))...)
}
