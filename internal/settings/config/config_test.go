package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
)

func load(env map[string]string) config.Config {
	return config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, forges.All())
}

func TestTheTierIsOneUnlessConfigurationClearlySaysOtherwise(t *testing.T) {
	cases := map[string]struct {
		tier  int
		warns bool
	}{
		"": {1, false}, "1": {1, false}, "2": {2, false}, "3": {3, false},
		"${CLAUDEOPS_TIER}": {1, false}, "${CLAUDEOPS_TIER:-3}": {1, false},
		"4": {1, true}, "0": {1, true}, "two": {1, true}, "3.0": {1, true}, "2;3": {1, true},
	}
	for value, want := range cases {
		c := load(map[string]string{"CLAUDEOPS_TIER": value})
		if int(c.Permissions.Tier) != want.tier || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("CLAUDEOPS_TIER=%q: tier %d, warnings %q", value, c.Permissions.Tier, c.Warnings)
		}
	}
	if c := load(nil); c.Permissions.Tier != 1 {
		t.Errorf("unset: tier %d", c.Permissions.Tier)
	}
}

func TestASwitchThatCannotBeReadIsOn(t *testing.T) {
	cases := map[string]struct{ on, warns bool }{
		"": {false, false}, "false": {false, false}, "0": {false, false}, "no": {false, false}, "FALSE": {false, false},
		"off":  {false, false},
		"true": {true, false}, "1": {true, false}, "yes": {true, false}, "On": {true, false},
		"${CLAUDEOPS_DRY_RUN}": {false, false},
		"ture":                 {true, true}, "2": {true, true}, "nope": {true, true},
	}
	for value, want := range cases {
		c := load(map[string]string{"CLAUDEOPS_DRY_RUN": value, "CLAUDEOPS_READ_ONLY": value})
		if c.Permissions.DryRun != want.on || c.Permissions.ReadOnly != want.on || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("%q: dry run %t, read-only %t, warnings %q", value, c.Permissions.DryRun, c.Permissions.ReadOnly,
				c.Warnings)
		}
	}
}

func TestStateDir(t *testing.T) {
	cases := []struct {
		name      string
		env       map[string]string
		want      string
		isDefault bool
	}{
		{"named", map[string]string{"CLAUDEOPS_STATE_DIR": "/s", "HOME": "/h"}, "/s", false},
		{"XDG", map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/claudeops", true},
		{"a relative XDG folder is ignored, as its specification says",
			map[string]string{"XDG_STATE_HOME": "x", "HOME": "/h"},
			"/h/.local/state/claudeops", true},
		{"home", map[string]string{"HOME": "/h"}, "/h/.local/state/claudeops", true},
		{"a placeholder counts as unset", map[string]string{"CLAUDEOPS_STATE_DIR": "${CLAUDEOPS_STATE_DIR}", "HOME": "/h"},
			"/h/.local/state/claudeops", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := load(c.env)
			if got.Records.Dir != c.want || got.Records.DirDefault != c.isDefault || got.Records.Problem != "" {
				t.Errorf("got %q, default %t, problem %q", got.Records.Dir, got.Records.DirDefault, got.Records.Problem)
			}
		})
	}
	if c := load(nil); c.Records.Dir != "" || !strings.Contains(c.Records.Problem, "CLAUDEOPS_STATE_DIR") {
		t.Errorf("without any folder: %q, %q", c.Records.Dir, c.Records.Problem)
	}
}

func TestAMalformedAllowlistIsAProblemAndNotAnEmptyList(t *testing.T) {
	if c := load(map[string]string{"CLAUDEOPS_REPOS": "joe/a, gitea:joe/b\nann/*"}); len(c.Permissions.Repos) != 3 ||
		c.Permissions.ReposProblem != "" {
		t.Errorf("got %v, %q", c.Permissions.Repos, c.Permissions.ReposProblem)
	}
	for _, bad := range []string{"joe", "joe/a, b", ",", "a/b/c"} {
		if c := load(map[string]string{"CLAUDEOPS_REPOS": bad}); c.Permissions.ReposProblem == "" {
			t.Errorf("%q was taken as %v", bad, c.Permissions.Repos)
		}
	}
}

func TestSecretsComeFromVariablesAndFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(t.TempDir(), "git-credentials")
	if err := os.WriteFile(stored, []byte("https://bot:stored-1@a.example.org\nhttps://bot:stored-2@b.example.org\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	c := load(map[string]string{
		"GITHUB_TOKEN": "from-a-variable", "GITEA_TOKEN_FILE": file, "CLAUDEOPS_API_TOKENS": "one-token,two-token",
		"CLAUDEOPS_WEBHOOK_URL_FILE": "/does/not/exist", "CLAUDEOPS_APPRISE_URLS": "${CLAUDEOPS_APPRISE_URLS}",
		"CLAUDEOPS_DATABASE_URL":           "postgres://joe:database-password@127.0.0.1/ops",
		"HTTPS_PROXY":                      "http://joe:proxy-password@127.0.0.1:3128",
		"CLAUDEOPS_DEPLOY_GIT_CREDENTIALS": stored,
	})
	for _, want := range []string{
		"from-a-variable", "from-a-file", "one-token", "two-token", "database-password", "proxy-password", "stored-1",
		"stored-2",
	} {
		if !slices.Contains(c.Secrets, want) {
			t.Errorf("%q is not among the secrets %q", want, c.Secrets)
		}
	}
	if slices.Contains(load(map[string]string{"CLAUDEOPS_DATABASE_URL": "postgres://claudeops@db/claudeops"}).Secrets,
		"claudeops") {
		t.Error("the name of a user and of a database is taken for a secret")
	}
	if got := load(
		map[string]string{"CLAUDEOPS_DATABASE_URL": "postgres://db/ops?password=in-the-query"}).Secrets; !slices.Contains(got,
		"in-the-query") {
		t.Errorf("a password is none of the secrets %q", got)
	}
	if len(c.Secrets) != 10 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "CLAUDEOPS_WEBHOOK_URL_FILE") {
		t.Errorf("secrets %q, warnings %q", c.Secrets, c.Warnings)
	}
}

func TestAPermissionThatCannotBeReadIsNotGiven(t *testing.T) {
	for value, want := range map[string]bool{"": false, "true": true, "1": true, "TRUE": true, "false": false,
		"yes please": false, "2": false} {
		if c := load(map[string]string{"CLAUDEOPS_NOTIFY_PLAIN_HTTP": value}); c.Notifications.AllowPlainHTTP != want {
			t.Errorf("%q: %t, want %t", value, c.Notifications.AllowPlainHTTP, want)
		}
	}
}

func TestAWarningNeverRepeatsAWholeValue(t *testing.T) {
	c := load(map[string]string{"CLAUDEOPS_TIER": "misplaced-token-value"})
	if len(c.Warnings) != 1 || strings.Contains(c.Warnings[0], "token") {
		t.Errorf("warnings %q", c.Warnings)
	}
}
