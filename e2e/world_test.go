//go:build e2e && linux

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// world is one operator's machine: a local root with the bare repository demo/home-cluster, a state folder, a home.
type world struct {
	home string
	repo string            // the bare repository
	vars map[string]string // the server's configuration
}

// seed returns the repository's files on main.
func seed() map[string]string {
	return map[string]string{
		"CLAUDE-OPS.md":        "# Home cluster\n",
		"checks/disk.md":       "# Disk\n\nWarn at 90 %.\n",
		"checks/network.md":    "# Network\n\nPing the router.\n",
		"playbooks/restart.md": "# Restart\n\nOne service at a time.\n",
	}
}

func newWorld(t *testing.T, tier string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "root/demo/home-cluster.git")}
	w.vars = map[string]string{
		"CLAUDEOPS_TIER":       tier,
		"CLAUDEOPS_LOCAL_ROOT": filepath.Join(dir, "root"),
		"CLAUDEOPS_REPOS_DIR":  filepath.Join(dir, "repos"),
		"CLAUDEOPS_STATE_DIR":  filepath.Join(dir, "state"),
	}
	for _, d := range []string{w.home, w.repo, w.vars["CLAUDEOPS_REPOS_DIR"], w.vars["CLAUDEOPS_STATE_DIR"]} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.git(t, "", "init", "--quiet", "--bare", "--initial-branch=main")
	w.git(t, importStream(seed()), "fast-import", "--quiet")
	return w
}

// importStream is one commit on main for git-fast-import(1).
func importStream(files map[string]string) string {
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter Operator <operator@example.invalid> 1767225600 +0000\ndata 5\nSeed\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	return b.String()
}

// environment is all that a client of this world sees of the process environment.
func (w *world) environment(more ...string) []string {
	env := append([]string{path(), "HOME=" + w.home, "TMPDIR=" + w.home}, more...)
	return append(env, w.variables()...)
}

// variables returns the server's configuration as NAME=value, sorted.
func (w *world) variables() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.vars)) {
		out = append(out, name+"="+w.vars[name])
	}
	return out
}

// git runs git in the repository as its owner would and returns what it prints.
func (w *world) git(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	got := run(t, program{
		path: "git", args: args, dir: w.repo, stdin: strings.NewReader(stdin),
		env: []string{
			path(), "HOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", // a container's user owns them
		},
	})
	if got.code != 0 {
		t.Fatalf("git %v: exit %d: %s", args, got.code, got.stderr)
	}
	return got.stdout
}

// branches returns the branches beside main.
func (w *world) branches(t *testing.T) []string {
	t.Helper()
	all := strings.Fields(w.git(t, "", "for-each-ref", "--format=%(refname:short)", "refs/heads"))
	return slices.DeleteFunc(all, func(b string) bool { return b == "main" })
}

// assertUntouched holds that nothing was written: no branch beside main.
func (w *world) assertUntouched(t *testing.T) {
	t.Helper()
	if got := w.branches(t); len(got) > 0 {
		t.Errorf("branches were made: %v", got)
	}
}

// assertProposed holds that branch is the only one, adds one commit to main, and changes exactly the files of the
// proposal to exactly their contents.
func (w *world) assertProposed(t *testing.T, branch string, p proposal) {
	t.Helper()
	if got := w.branches(t); !slices.Equal(got, []string{branch}) {
		t.Fatalf("branches beside main are %v, want only %s", got, branch)
	}
	if got := strings.TrimSpace(w.git(t, "", "rev-list", "--count", "main.."+branch)); got != "1" {
		t.Errorf("%s has %s commits of its own, want 1", branch, got)
	}
	changed := strings.Fields(w.git(t, "", "diff", "--name-only", "main", branch))
	if want := p.paths(); !slices.Equal(changed, want) {
		t.Errorf("%s changes %v, want %v", branch, changed, want)
	}
	for _, f := range p.Files {
		if got := w.git(t, "", "show", branch+":"+f.Path); got != f.Content {
			t.Errorf("%s on %s is %q, want %q", f.Path, branch, got, f.Content)
		}
	}
}
