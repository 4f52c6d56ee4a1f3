package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAForgeIsUsableOrSaysWhichVariableIsWrong(t *testing.T) {
	const token = "t0ken"
	cases := map[string]struct {
		env      map[string]string
		url      string
		problem  string // a part of it; "" for none
		ofGitHub bool
	}{
		"GitHub with a token":    {map[string]string{"GITHUB_TOKEN": token}, "https://api.github.com/", "", true},
		"GitHub without a token": {nil, "", "GITHUB_TOKEN is not set", true},
		"GitHub, a placeholder": {map[string]string{"GITHUB_TOKEN": "${GITHUB_TOKEN}"}, "", "GITHUB_TOKEN is not set",
			true},
		"GitHub Enterprise": {map[string]string{"GITHUB_TOKEN": token,
			"GITHUB_API_URL": "https://GIT.example/api/v3"}, "https://git.example/api/v3/", "", true},
		"an address with a token": {map[string]string{"GITHUB_TOKEN": token,
			"GITHUB_API_URL": "https://s3cret@git.example/"}, "", "GITHUB_API_URL carries", true},
		"Gitea with both": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "https://git.example"},
			"https://git.example/", "", false},
		"Gitea below a path": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "https://git.example/gitea//"},
			"https://git.example/gitea/", "", false},
		"Gitea, the address of its API": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "https://git.example/api/v1"},
			"", "without api/v1", false},
		"Gitea without anything": {nil, "", "GITEA_URL and GITEA_TOKEN are not set", false},
		"Gitea without a token": {map[string]string{"GITEA_URL": "https://git.example"}, "", "GITEA_TOKEN is not set",
			false},
		"Gitea without an address": {map[string]string{"GITEA_TOKEN": token}, "", "GITEA_URL is not set", false},
		"Gitea, no address": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "git.example"}, "",
			"GITEA_URL is not an address", false},
		"Gitea, another scheme": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "ssh://git.example"}, "",
			"GITEA_URL is not an address", false},
		"Gitea, an address with query": {map[string]string{"GITEA_TOKEN": token,
			"GITEA_URL": "https://git.example/?s3cret=1"}, "", "GITEA_URL has a query", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := load(c.env)
			got := all.Forges.All[1]
			if c.ofGitHub {
				got = all.Forges.All[0]
			}
			if c.problem != "" {
				if !strings.Contains(got.Problem, c.problem) || strings.Contains(got.Problem, "s3cret") || got.URL != nil &&
					got.Token.Text != "" {
					t.Errorf("got %+v, want the problem %q", got, c.problem)
				}
				return
			}
			if got.Problem != "" || got.URL.String() != c.url || got.Token.Text != token {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// keyLine has the form of a line of a private key.
const keyLine = "MIIEowIBAAKCAQEAuNotARealKeyNotARealKeyNotARealKeyNotARealKey0123"

func appKey() string {
	return "-----BEGIN RSA PRIVATE KEY-----\n" + keyLine + "\nshort==\n-----END RSA PRIVATE KEY-----"
}

func TestAGitHubAppIsUsableOrSaysWhichVariableIsWrong(t *testing.T) {
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "key.pem"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{file: appKey() + "\n", empty: ""} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	cases := map[string]struct {
		env     map[string]string
		keyFile string
		problem string
	}{
		"an ID and a key": {map[string]string{"GITHUB_APP_ID": "12345", "GITHUB_APP_PRIVATE_KEY": appKey()}, "", ""},
		"a client ID and a file": {map[string]string{"GITHUB_APP_ID": "Iv1.8a61f9b3a7aba766",
			"GITHUB_APP_PRIVATE_KEY_FILE": file}, file, ""},
		"an ID alone": {map[string]string{"GITHUB_APP_ID": "12345", "GITHUB_TOKEN": "t0ken"}, "",
			"GITHUB_APP_PRIVATE_KEY is not"},
		"an ID and an empty file": {map[string]string{"GITHUB_APP_ID": "12345", "GITHUB_APP_PRIVATE_KEY_FILE": empty}, "",
			"GITHUB_APP_PRIVATE_KEY is not"},
		"an ID and a missing file": {map[string]string{"GITHUB_APP_ID": "12345", "GITHUB_APP_PRIVATE_KEY_FILE": dir + "/no"},
			"", "GITHUB_APP_PRIVATE_KEY is not"},
		"a key alone": {map[string]string{"GITHUB_APP_PRIVATE_KEY": appKey()}, "", "GITHUB_APP_ID is not"},
		"no ID": {map[string]string{"GITHUB_APP_ID": "my app", "GITHUB_APP_PRIVATE_KEY": appKey()}, "",
			"GITHUB_APP_ID is not an app ID"},
		"a wrong address": {map[string]string{"GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY": appKey(),
			"GITHUB_API_URL": "git.example"}, "",
			"GITHUB_API_URL is not an address"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := load(c.env).Forges.All[0]
			switch {
			case c.problem != "":
				if !strings.Contains(got.Problem, c.problem) || got.URL != nil {
					t.Errorf("got %+v, want the problem %q", got, c.problem)
				}
			case got.Problem != "" || got.Token.Text != "" || got.URL == nil || got.App == nil:
				t.Errorf("got %+v", got)
			case *got.App != forge.App{ID: c.env["GITHUB_APP_ID"], Key: forge.Secret{Text: appKey(), File: c.keyFile}}:
				t.Errorf("got %+v", *got.App)
			}
		})
	}
	// Compose mounts a file for each secret, empty unless it is filled.
	unused := load(map[string]string{"GITHUB_TOKEN": "t0ken", "GITHUB_APP_PRIVATE_KEY_FILE": empty})
	if got := unused.Forges.All[0]; got.Problem != "" || got.App != nil || got.Token.Text != "t0ken" ||
		len(unused.Warnings) > 0 {
		t.Errorf("without an app: %+v, %q", unused.Forges.All[0], unused.Warnings)
	}
}

func TestAnAppIsTakenBeforeATokenAndBothAreSecrets(t *testing.T) {
	c := load(map[string]string{"GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY": appKey(), "GITHUB_TOKEN": "t0ken-of-joe"})
	if got := c.Forges.All[0]; got.App == nil || got.Token.Text != "" || len(c.Warnings) != 1 ||
		!strings.Contains(c.Warnings[0], "GITHUB_TOKEN is not used") {
		t.Errorf("got %+v, %q", c.Forges.All[0], c.Warnings)
	}
	escaped := load(map[string]string{"GITHUB_APP_ID": "1",
		"GITHUB_APP_PRIVATE_KEY": strings.ReplaceAll(appKey(), "\n", `\n`)})
	if !slices.Equal(c.Secrets, []string{"t0ken-of-joe", appKey()}) || !slices.Equal(escaped.Secrets, []string{appKey()}) {
		t.Errorf("the secrets are %q and %q", c.Secrets, escaped.Secrets)
	}
}

func TestTheFileOfATokenIsKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(file, []byte("t0ken\n"), 0o600))
	c := load(map[string]string{"GITHUB_TOKEN_FILE": file, "GITEA_URL": "https://git.example", "GITEA_TOKEN": "other",
		"GITEA_TOKEN_FILE": file})
	all := c.Forges.All
	if all[0].Token != (forge.Secret{Text: "t0ken", File: file}) || all[1].Token != (forge.Secret{Text: "other"}) {
		t.Errorf("got %+v", all)
	}
}

func TestSecretsOfWebhooksAreKeptAndShortOnesAreNotUsed(t *testing.T) {
	const good, short = "sixteen-letters!", "fifteen-letters"
	file := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(file, []byte(good+"\n"), 0o600))
	for name, row := range map[string]struct {
		env    map[string]string
		github string
		gitea  string
		secret string // in Secrets
		warns  bool
	}{
		"none":          {nil, "", "", "", false},
		"GitHub's":      {map[string]string{"GITHUB_WEBHOOK_SECRET": good}, good, "", good, false},
		"Gitea's":       {map[string]string{"GITEA_WEBHOOK_SECRET": good}, "", good, good, false},
		"from a file":   {map[string]string{"GITHUB_WEBHOOK_SECRET_FILE": file}, good, "", good, false},
		"too short":     {map[string]string{"GITHUB_WEBHOOK_SECRET": short}, "", "", short, true},
		"a placeholder": {map[string]string{"GITEA_WEBHOOK_SECRET": "${GITEA_WEBHOOK_SECRET}"}, "", "", "", false},
	} {
		c := load(row.env)
		if c.Forges.All[0].HookSecret != row.github || c.Forges.All[1].HookSecret != row.gitea ||
			(len(c.Warnings) > 0) != row.warns {
			t.Errorf("%s: %+v, warnings %q", name, c.Forges, c.Warnings)
		}
		if row.secret != "" && !slices.Contains(c.Secrets, row.secret) {
			t.Errorf("%s: it is not among the secrets", name)
		}
		if row.warns && strings.Contains(c.Warnings[0], short) {
			t.Errorf("%s: the warning tells it: %q", name, c.Warnings[0])
		}
	}
}

func TestTheIntervalOfThePollIsWithinBounds(t *testing.T) {
	for value, want := range map[string]struct {
		every time.Duration
		warns bool
	}{
		"": {config.DefaultPollInterval, false}, "0": {0, false}, "0s": {0, false}, "30s": {30 * time.Second, false},
		"24h":   {24 * time.Hour, false},
		"1h30m": {90 * time.Minute, false}, "29s": {config.DefaultPollInterval, true},
		"24h1s": {config.DefaultPollInterval, true},
		"-1m":   {config.DefaultPollInterval, true}, "5": {config.DefaultPollInterval, true},
		"often":                      {config.DefaultPollInterval, true},
		"${CLAUDEOPS_POLL_INTERVAL}": {config.DefaultPollInterval, false},
	} {
		c := load(map[string]string{"CLAUDEOPS_POLL_INTERVAL": value})
		if c.Forges.PollInterval != want.every || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("%q: %s, warnings %q", value, c.Forges.PollInterval, c.Warnings)
		}
	}
}
