//go:build unix

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// Readers of settings neither wait for a named pipe nor read a device, which never ends. They report it at once.
func TestWhatIsNotAFileIsReportedAtOnce(t *testing.T) {
	for _, c := range []struct {
		at   string // below the folder
		read func(t *testing.T, folder, name string)
	}{
		{"token", readsSecrets}, {"policy.yaml", readsPolicy}, {config.MarkKeyName, readsKey}, {"repos", readsRepositories},
		{"repos/repo/CLAUDE-OPS.md", readsOffers}, {"repos/repo/.claude-ops/mcp.json", readsOffers},
		{"repos/repo/checks", readsOffers}, {"repos/repo/checks/a.md", readsOffers},
		{"repos/repo/.claude-ops/skills/a/SKILL.md", readsOffers}, {"repos/repo/.claude-ops", readsOffers},
	} {
		for kind, put := range map[string]func(string) error{
			"a named pipe":       func(name string) error { return unix.Mkfifo(name, 0o600) },
			"a link to a device": func(name string) error { return os.Symlink("/dev/zero", name) },
		} {
			t.Run(c.at+" is "+kind, func(t *testing.T) {
				folder := t.TempDir()
				name := filepath.Join(folder, c.at)
				must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), put(name)))
				done := make(chan struct{})
				go func() { defer close(done); c.read(t, folder, name) }()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Fatal("it waits")
				}
			})
		}
	}
}

// readsSecrets reads the file as every secret that a variable may name, and as a secret of ours.
func readsSecrets(t *testing.T, folder, name string) {
	for _, variable := range []string{"GITHUB_TOKEN_FILE", "FRACTARY_REGISTRY_TOKEN_FILE", "CLAUDEOPS_API_TOKENS_FILE",
		"CLAUDEOPS_DEPLOY_GIT_CREDENTIALS", "ANTHROPIC_API_KEY_FILE"} {
		c := config.Load(config.Environment(func(v string) (string, bool) {
			return map[string]string{variable: name}[v], v == variable
		}), forges.All())
		if strings.HasSuffix(variable, "_FILE") && !strings.Contains(strings.Join(c.Warnings, "\n"),
			variable+" names a file that cannot be read") {
			t.Errorf("%s: %v", variable, c.Warnings)
		}
	}
	if text, err := files.ReadSecret(name); text != "" || !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("read %q, %v", text, err)
	}
	fresh := func() (string, error) { return "fresh", nil }
	text, err := files.LoadSecret(folder, filepath.Base(name), fresh)
	if text != "" || !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("loaded %q, %v", text, err)
	}
	must.Equal(t, files.NewSecretFile(name, "first", nil).Reread(), "first")
}

func readsPolicy(t *testing.T, _, name string) {
	if _, err := policy.Load(name); err == nil ||
		!strings.Contains(err.Error(), name+" cannot be read: is not a regular file") {
		t.Error(err)
	}
}

func readsKey(t *testing.T, folder, _ string) {
	_, err := config.LoadMarkKey(folder)
	_, err2 := config.FindMarkKey(folder)
	if !errors.Is(err, files.ErrNotRegular) || !errors.Is(err2, files.ErrNotRegular) {
		t.Errorf("%v; %v", err, err2)
	}
}

func readsRepositories(t *testing.T, _, name string) {
	repos := config.Repos{Dir: name}
	if offers := repos.Offers(); len(offers.Problems) != 1 {
		t.Errorf("%+v", offers)
	}
	if _, found, _ := repos.Find("owner", "repo"); found {
		t.Error("found a repository there")
	}
}

func readsOffers(t *testing.T, folder, _ string) {
	repos := config.Repos{Dir: filepath.Join(folder, "repos")}
	must.Do(t, os.MkdirAll(filepath.Join(repos.Dir, "repo", ".git"), 0o700))
	offers := repos.Offers()
	if len(offers.Repositories) != 1 {
		t.Errorf("%+v", offers)
		return
	}
	r := offers.Repositories[0]
	said := fmt.Sprint(r.Problems)
	if r.MCP != nil {
		said += r.MCP.Problem
	}
	if !strings.Contains(said, "not a plain file") && !strings.Contains(said, "not a folder") &&
		!strings.Contains(said, "symbolic link") {
		t.Error(said)
	}
	_, _, _ = repos.Find("owner", "repo") // says the same, or nothing
}
