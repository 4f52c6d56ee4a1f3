package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// A source of the operator's list says what git signs in with at its host, and whether the host may be private.
func TestGitUsesTheTokenOfASource(t *testing.T) {
	url, _ := upstream(t)
	folder := t.TempDir()
	if err := os.Symlink(strings.TrimPrefix(url, "file://"), filepath.Join(folder, "repo")); err != nil {
		t.Fatal(err)
	}
	server, elsewhere, leading := newPrivateServer(t, folder), newPrivateServer(t, folder), newPrivateServer(t, folder)
	leading.redirect = elsewhere.URL
	for name, test := range map[string]struct {
		server   *privateServer
		source   sources.Source
		own      bool // the configuration is the operator's
		reaped   bool
		refused  Code // "" if the repository is read
		says     string
		signedIn bool
	}{
		"with a token": {server: server, source: sources.Source{TokenEnv: "TEAM", Private: true},
			signedIn: true},
		"with a token, below the reaper": {server: server, source: sources.Source{TokenEnv: "TEAM", Private: true},
			reaped: true, signedIn: true},
		"for the operator's own": {server: server, source: sources.Source{TokenEnv: "TEAM"}, own: true,
			reaped: true, signedIn: true},
		"with the token of a variable unset": {server: server, source: sources.Source{TokenEnv: "NONE", Private: true},
			refused: GitFailed},
		"without a token": {server: server, source: sources.Source{Private: true}, refused: GitFailed},
		"at a private address": {server: server, source: sources.Source{TokenEnv: "TEAM"},
			refused: SourceNotAllowed, says: "claudeops sources allow --private"},
		"at a server that leads on elsewhere": {server: leading, source: sources.Source{TokenEnv: "TEAM", Private: true},
			reaped: true, refused: GitFailed, signedIn: true},
	} {
		t.Run(name, func(t *testing.T) {
			trusting := privateSetup(t, test.server)
			b := newBench(t, nil)
			dir := "project/mine/"
			if test.own {
				dir = "agentpack/repo/"
			}
			seen := filepath.Join(t.TempDir(), "seen")
			operationtest.WriteFiles(t, b.dir, map[string]string{
				dir + configName: moduleOf(test.server.URL+"/repo/.git", ", subdir: prompts"),
				"bin/git":        "#!/bin/sh\n{ echo \"$@\"; env; } >> '" + seen + "'\nexec '" + b.settings.Git.Path + "' \"$@\"\n",
			})
			if err := os.Chmod(filepath.Join(b.dir, "bin/git"), 0o700); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
			test.source.Origin = strings.ToLower(test.server.URL)
			b.door = record.DoorCLI
			b.settings.Git = GitCommand{
				Path: filepath.Join(b.dir, "bin/git"), Env: trusting.Git.git.Env, Reaped: test.reaped,
				Token: func(name string) string { return map[string]string{"TEAM": gitToken}[name] },
			}
			b.settings.Sources = func() sources.List { return sources.List{test.source} }
			test.server.got()
			elsewhere.got()
			question := `{"repo":"mine"}`
			if test.own {
				question = `{}`
			}
			out := b.ask(ToolDiff, question)
			text, _ := json.Marshal(out)
			switch {
			case test.refused == "" && (!out.OK || !strings.Contains(string(text), "two")):
				t.Errorf("%s", text)
			case test.refused != "" && (out.OK || out.Errors[0].Code != test.refused ||
				!strings.Contains(out.Errors[0].Message, test.says)):
				t.Errorf("%s", text)
			}
			if asked := test.server.got(); emptyPassword(asked) == test.signedIn || test.refused == SourceNotAllowed &&
				len(asked) > 0 {
				t.Errorf("signed in with %v", asked)
			}
			if asked := elsewhere.got(); len(asked) > 0 {
				t.Errorf("elsewhere signed in with %v", asked)
			}
			if way, err := os.ReadFile(seen); test.refused != SourceNotAllowed && err != nil ||
				strings.Contains(string(way)+string(text), gitToken) {
				t.Errorf("%v: the token is in the answer, in git's arguments or in its environment", err)
			}
			if left := filesWith(t, b.dir, gitToken); left != nil {
				t.Errorf("the token is in %v", left)
			}
		})
	}
}
