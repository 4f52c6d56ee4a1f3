package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
)

func TestAWorkingCopyIsUpdatedFromWhereTheOperatorSaysAlone(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CLAUDEOPS_STATE_DIR": t.TempDir(), "CLAUDEOPS_LOCAL_ROOT": "/srv/git", "GITEA_URL": "https://git.example.org/forge/",
		"GITEA_TOKEN":  "gitea-token-of-the-forge",
		"GITHUB_TOKEN": "github-token-of-the-forge", "TEAM_TOKEN": "token-of-the-team",
	}
	a := &commandLine{
		lookup:  func(name string) (string, bool) { value, has := env[name]; return value, has },
		streams: Streams{In: strings.NewReader(""), Out: new(bytes.Buffer), Err: io.Discard},
	}
	p := a.program().Wire(app.Needs{})
	defer a.program().Close() //nolint:errcheck // nothing was written
	for _, origin := range []string{"https://other.example.org/team", "ssh://git@other.example.org/ssh"} {
		allow := &commandLine{lookup: a.lookup, streams: Streams{In: strings.NewReader(""), Out: new(bytes.Buffer),
			Err: io.Discard}}
		root := allow.rootCommand()
		args := []string{"sources", "allow", origin}
		if strings.HasPrefix(origin, "https") {
			args = append(args, "--token-env", "TEAM_TOKEN")
		}
		root.SetArgs(args)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := allow.program().Close(); err != nil {
			t.Fatal(err)
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
