//go:build unix

package mounted_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/settings/mounted"
)

// notFiles makes a named pipe and a link to a device, which never ends.
func notFiles(t *testing.T, name string) []func() {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Dir(name), 0o700))
	return []func(){
		func() { must(unix.Mkfifo(name, 0o600)) },
		func() { must(os.Remove(name)); must(os.Symlink("/dev/zero", name)) },
	}
}

// within fails if do takes longer than what waits for nothing could, on any machine.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

func TestWhatIsNoFileInARepositoryIsSaidAtOnce(t *testing.T) {
	for _, at := range []string{"CLAUDE-OPS.md", ".claude-ops/mcp.json", "checks", "checks/a.md",
		".claude-ops/skills/a/SKILL.md", ".claude-ops"} {
		dir := t.TempDir()
		name := filepath.Join(dir, "repo", at)
		if err := os.MkdirAll(filepath.Join(dir, "repo", ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, make := range notFiles(t, name) {
			make()
			within(t, func() {
				repos := mounted.Repos{Dir: dir}
				offers := repos.Offers()
				if len(offers.Repositories) != 1 {
					t.Fatalf("%s: %+v", at, offers)
				}
				r := offers.Repositories[0]
				said := fmt.Sprint(r.Problems)
				if r.MCP != nil {
					said += r.MCP.Problem
				}
				if !strings.Contains(said, "no plain file") && !strings.Contains(said, "no folder") &&
					!strings.Contains(said, "symbolic link") {
					t.Errorf("%s: %s", at, said)
				}
				_, _, _ = repos.Find("owner", "repo") // says the same, or nothing
			})
		}
	}
}

func TestAFolderOfRepositoriesThatIsNoneIsSaidAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "repos")
	for _, make := range notFiles(t, name) {
		make()
		within(t, func() {
			repos := mounted.Repos{Dir: name}
			if offers := repos.Offers(); len(offers.Problems) != 1 {
				t.Errorf("%+v", offers)
			}
			if _, found, _ := repos.Find("owner", "repo"); found {
				t.Error("found in what is no folder")
			}
		})
	}
}
