package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/driver"
)

// keyLine has the form of a line of a private key.
const keyLine = "MIIEowIBAAKCAQEAuNotARealKeyNotARealKeyNotARealKeyNotARealKey0123"

func appKey() string {
	return "-----BEGIN RSA PRIVATE KEY-----\n" + keyLine + "\nshort==\n-----END RSA PRIVATE KEY-----"
}

func TestAGitHubAppIsUsableOrSaysWhichVariableIsWrong(t *testing.T) {
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "key.pem"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{file: appKey() + "\n", empty: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
			"GITHUB_APP_ID is no ID"},
		"a wrong address": {map[string]string{"GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY": appKey(),
			"GITHUB_API_URL": "git.example"}, "",
			"GITHUB_API_URL is no address"},
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
			case *got.App != driver.App{ID: c.env["GITHUB_APP_ID"], Key: driver.Secret{Text: appKey(), File: c.keyFile}}:
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
	if err := os.WriteFile(file, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(map[string]string{"GITHUB_TOKEN_FILE": file, "GITEA_URL": "https://git.example", "GITEA_TOKEN": "other",
		"GITEA_TOKEN_FILE": file})
	all := c.Forges.All
	if all[0].Token != (driver.Secret{Text: "t0ken", File: file}) || all[1].Token != (driver.Secret{Text: "other"}) {
		t.Errorf("got %+v", all)
	}
}
