package config

import (
	"fmt"
	"net/url"
	"strings"
)

// DefaultGitHubAPI is GitHub's own API.
const DefaultGitHubAPI = "https://api.github.com/"

// Forges are the git hosts.
type Forges struct {
	GitHub          Forge
	Gitea           Forge
	LocalRoot       string // folder of local repositories; "" for none
	DefaultProvider string
	AllowPlainHTTP  bool   // tokens may go over plain http to other machines
	CAFile          string // PEM certificates to trust beside the system's
}

// Forge is how to reach a git host over its API. Problem says, naming the variable, why it cannot be used; it is "" if
// nothing speaks against trying.
type Forge struct {
	URL       *url.URL // of the API (GitHub) or of the installation (Gitea), with a slash at its end; nil if it is not given or no good
	Token     string
	TokenFile string     // where Token is from, so that it can be read again; "" if it is from a variable
	App       *GitHubApp // in whose name to act, instead of with Token; nil: none
	Problem   string
}

func (e *env) forges() Forges {
	return Forges{
		GitHub: e.github(), Gitea: e.gitea(), LocalRoot: absolute(e.get("CLAUDEOPS_LOCAL_ROOT")),
		DefaultProvider: strings.ToLower(e.get("CLAUDEOPS_DEFAULT_PROVIDER")),
		AllowPlainHTTP:  e.permission("CLAUDEOPS_FORGE_PLAIN_HTTP"), CAFile: e.get("CLAUDEOPS_CA_FILE"),
	}
}

func (e *env) github() Forge {
	raw := e.get("GITHUB_API_URL")
	if raw == "" {
		raw = DefaultGitHubAPI
	}
	token := e.secret("GITHUB_TOKEN") // a token that is not used, since there is an app, is a secret all the same
	if app, problem := e.githubApp(); app != nil || problem != "" {
		return appForge(raw, app, problem)
	}
	f := forge("GITHUB_API_URL", raw, "GITHUB_TOKEN", token)
	f.TokenFile = e.secretFile("GITHUB_TOKEN")
	return f
}

func (e *env) gitea() Forge {
	out := forge("GITEA_URL", e.get("GITEA_URL"), "GITEA_TOKEN", e.secret("GITEA_TOKEN"))
	out.TokenFile = e.secretFile("GITEA_TOKEN")
	if out.URL != nil && strings.HasSuffix(out.URL.Path, "/api/v1/") {
		return Forge{Token: out.Token, Problem: "GITEA_URL is the address of the API; give that of the installation, without api/v1"}
	}
	return out
}

func forge(urlName, raw, tokenName, token string) Forge {
	if token == "" && raw == "" {
		return Forge{Problem: urlName + " and " + tokenName + " are not set"}
	}
	u, err := parseBase(raw)
	if token == "" {
		return Forge{URL: u, Problem: tokenName + " is not set"}
	}
	if err != nil {
		return Forge{Token: token, Problem: fmt.Sprintf("%s %s", urlName, err)}
	}
	return Forge{URL: u, Token: token}
}

// parseBase reads the address of an API. The text itself is in no error: it may hold a password.
func parseBase(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, fmt.Errorf("is not set")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("is no address of the form https://host/")
	case u.User != nil:
		return nil, fmt.Errorf("carries a user name or password; give the token in its own variable")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("has a query or a fragment; give the plain address")
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	u.RawPath = ""
	return u, nil
}
