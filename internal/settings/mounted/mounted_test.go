package mounted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/mounted"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func section(owner, repo, provider string) string {
	return "## Git Provider\n- provider: " + provider + "\n- owner: " + owner + "\n- repo: " + repo + "\n"
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "infra/CLAUDE-OPS.md", section("joe", "home-cluster", "gitea"))
	write(t, dir, "ann/web/CLAUDE-OPS.md", section("ann", "web", "github"))
	write(t, dir, "plain/CLAUDE-OPS.md", "## Git Provider\n- provider: local\n")
	write(t, dir, "odd/CLAUDE-OPS.md", "## Git Provider\n- provdier: local\n")
	write(t, dir, "twice-a/CLAUDE-OPS.md", section("joe", "twice", "gitea"))
	write(t, dir, "twice-b/CLAUDE-OPS.md", section("joe", "twice", "github"))
	write(t, dir, "none/README.md", "no manifest\n")
	write(t, dir, "infra/docs/CLAUDE-OPS.md", section("joe", "other", "github"))
	write(t, dir, "bare/.git/config", "")
	write(t, dir, "bare/docs/CLAUDE-OPS.md", section("joe", "third", "github"))
	outside := t.TempDir()
	write(t, outside, "CLAUDE-OPS.md", section("joe", "linked", "gitea"))
	if err := os.Symlink(outside, filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, owner, repo string
		want, fails       string
	}{
		{"by what the section says, whatever the folder", "joe", "home-cluster", "gitea", ""},
		{"letter case aside", "JOE", "Home-Cluster", "gitea", ""},
		{"two levels down", "ann", "web", "github", ""},
		{"by the folder, when the section names no repository", "anyone", "plain", "local", ""},
		{"nothing mounted", "joe", "absent", "", ""},
		{"a folder without a manifest", "joe", "none", "", ""},
		{"a folder whose manifest is another repository's", "joe", "infra", "", ""},
		{"a broken manifest of this repository", "joe", "odd", "", "unknown key"},
		{"two that claim the same repository", "joe", "twice", "", "both claim"},
		{"deeper in a working copy with a manifest", "joe", "other", "", ""},
		{"deeper in a working copy without one", "joe", "third", "", ""},
		{"behind a symbolic link", "joe", "linked", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, found, err := mounted.Repos{Dir: dir}.Find(c.owner, c.repo)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, want one that says %q", err, c.fails)
				}
				return
			}
			if err != nil || found != (c.want != "") || m.Provider != c.want {
				t.Errorf("got %+v, %t, %v; want %q", m, found, err, c.want)
			}
		})
	}
	if _, found, err := (mounted.Repos{Dir: filepath.Join(dir, "missing")}).Find("joe", "x"); found || err != nil {
		t.Errorf("a missing folder gave %t, %v", found, err)
	}
}

func TestAManifestThatIsALinkIsNotRead(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "m.md", section("joe", "x", "gitea"))
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "m.md"), filepath.Join(dir, "x", "CLAUDE-OPS.md")); err != nil {
		t.Fatal(err)
	}
	if _, found, err := (mounted.Repos{Dir: dir}).Find("joe", "x"); found || err == nil {
		t.Errorf("a linked manifest gave %t, %v", found, err)
	}
}
