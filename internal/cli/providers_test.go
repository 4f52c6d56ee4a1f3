package cli

import (
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestCloneURLsBeginWithTheAddressOfPagesNotOfTheAPI(t *testing.T) {
	t.Parallel()
	for api, c := range map[string]struct{ host, want string }{
		"https://api.github.com/":            {"github.com", "https://github.com"},
		"https://ghe.example.org/api/v3/":    {"ghe.example.org", "https://ghe.example.org"},
		"https://git.example.org:3000/":      {"git.example.org:3000", "https://git.example.org:3000"},
		"http://127.0.0.1:3000/":             {"127.0.0.1:3000", "http://127.0.0.1:3000"},
		"https://example.org/code/gitea/":    {"example.org", "https://example.org/code/gitea"},
		"https://api.acme.ghe.com/":          {"acme.ghe.com", "https://acme.ghe.com"},
		"https://example.org:8443/git/":      {"example.org:8443", "https://example.org:8443/git"},
		"https://ghe.example.org:84/api/v3/": {"ghe.example.org:84", "https://ghe.example.org:84"},
	} {
		at := must.Get(url.Parse(api))(t)
		if got := app.CloneBase(at, []string{c.host}); got != c.want {
			t.Errorf("%s: %s, want %s", api, got, c.want)
		}
	}
	if got := app.CloneBase(nil, nil); got != "" {
		t.Errorf("without an address: %q", got)
	}
}

func TestAWorkingCopyIsUpdatedFromWhereTheOperatorSaysAlone(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CLAUDEOPS_STATE_DIR": t.TempDir(), "CLAUDEOPS_LOCAL_ROOT": "/srv/git", "GITEA_URL": "https://git.example.org/forge/",
		"GITEA_TOKEN":  "gitea-token-of-the-forge",
		"GITHUB_TOKEN": "github-token-of-the-forge", "TEAM_TOKEN": "token-of-the-team",
	}
	a, p := newProcess(t, env)
	for _, origin := range []string{"https://other.example.org/team", "ssh://git@other.example.org/ssh"} {
		args := []string{"sources", "allow", origin}
		if strings.HasPrefix(origin, "https") {
			args = append(args, "--token-env", "TEAM_TOKEN")
		}
		if _, errs, code := runArgs(t, env, args...); code != 0 {
			t.Fatal(errs)
		}
	}
	for address, want := range map[string]struct {
		url, token string
		public     bool
		refused    string
	}{
		"https://git.example.org/forge/joe/infra.git": {url: "https://git.example.org/forge/joe/infra",
			token: "gitea-token-of-the-forge"},
		"ssh://git@git.example.org/joe/infra.git": {url: "https://git.example.org/forge/joe/infra",
			token: "gitea-token-of-the-forge"},
		"git@github.com:joe/infra.git": {url: "https://github.com/joe/infra",
			token: "github-token-of-the-forge"},
		"https://github.com/joe/infra": {url: "https://github.com/joe/infra",
			token: "github-token-of-the-forge"},
		// never in the clear
		"http://github.com/joe/infra": {url: "https://github.com/joe/infra", token: "github-token-of-the-forge"},
		"https://github.com.example.net/joe/infra": {refused: "claudeops sources allow " +
			"https://github.com.example.net/joe/infra"},
		"https://joe:secret@github.com/joe/infra": {refused: "only its configuration names"},
		"https://other.example.org/team/infra.git": {url: "https://other.example.org/team/infra.git",
			token: "token-of-the-team", public: true},
		"https://other.example.org/else/infra.git": {refused: "claudeops sources allow " +
			"https://other.example.org/else/infra"},
		"git@other.example.org:ssh/infra": {url: "git@other.example.org:ssh/infra", public: true},
		"/srv/git/joe/infra.git":          {url: "/srv/git/joe/infra.git"},
		"/srv/other/infra.git":            {refused: "claudeops sources allow file:///srv/other/infra.git"},
		"ext::sh -c id":                   {refused: "only its configuration names"},
		"--upload-pack=id":                {refused: "only its configuration names"},
	} {
		got, err := app.RemoteOf(a.program(), p, address)
		switch {
		case want.refused != "" && (err == nil || !strings.Contains(err.Error(), want.refused)):
			t.Errorf("%s: %+v, %v, want %q", address, got, err, want.refused)
		case want.refused == "" && (err != nil || got.URL.Value() != want.url || got.Token != want.token ||
			got.Public != want.public || !got.Exact):
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
}

// A forge that is added brings secrets, which neither scripts nor registries get.
func TestNoSecretOfOursIsForScriptsOrRegistries(t *testing.T) {
	t.Parallel()
	set := func(string) (string, bool) { return "/run/secrets/something", true }
	cfg := config.Load(config.Environment(func(string) (string, bool) { return "", false }), forges.All())
	for _, v := range config.Variables(forges.All()) {
		if !v.Secret {
			continue
		}
		for _, name := range []string{v.Name, v.Name + "_FILE"} {
			if _, seen := config.ScriptVariable(set, cfg, name); seen {
				t.Errorf("scripts see %s", name)
			}
			if name != "FRACTARY_REGISTRY_TOKEN" && !sources.Reserved(name) { // that one is for registries
				t.Errorf("a registry may be sent %s; sources.Reserved is to name it", name)
			}
		}
	}
}
