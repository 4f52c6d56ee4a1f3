//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
		must.Do(t, os.MkdirAll(d, 0o700))
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

// does runs a command of claudeops where the operator is, and returns what it prints. It ends the test if that fails.
func (w *world) does(t *testing.T, args ...string) string {
	t.Helper()
	return w.doesIn(t, "", nil, args...)
}

// doesIn is does in a folder, which is below the operator's home unless it is absolute, with more settings.
func (w *world) doesIn(t *testing.T, folder string, more []string, args ...string) string {
	t.Helper()
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(w.home, folder)
	}
	got := run(t, program{path: claudeops(t), args: args, dir: folder, env: append(w.environment(), more...)})
	if got.code != 0 {
		t.Fatalf("claudeops %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// policyOf writes a policy, and returns the variable that names it.
func policyOf(t *testing.T, rules string) string {
	t.Helper()
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"policy.yaml": "version: 1\n" + rules})
	return "CLAUDEOPS_POLICY=" + filepath.Join(dir, "policy.yaml")
}

// token makes a token.
func (w *world) token(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(w.does(t, append([]string{"token", "create"}, args...)...))
}

// gitIn runs git as an author in a folder below the operator's home.
func (w *world) gitIn(t *testing.T, folder string, args ...string) {
	t.Helper()
	got := run(t, program{path: "git", args: args, dir: filepath.Join(w.home, folder), env: w.environment(
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")})
	if got.code != 0 {
		t.Fatalf("git %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
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

// proposal is the arguments of create_pr, as a client writes them.
type proposal struct {
	Owner      string       `json:"repo_owner"`
	Name       string       `json:"repo_name"`
	Title      string       `json:"title"`
	Body       string       `json:"body"`
	ChangeType string       `json:"change_type"`
	Files      []fileChange `json:"files"`
	Preview    string       `json:"preview,omitempty"`
}

type fileChange struct {
	Path    string `json:"path"`
	Action  string `json:"action"`
	Content string `json:"content"`
}

// quieterDisk is a proposal that tier 2 may make.
func quieterDisk() proposal {
	return proposal{
		Owner: "demo", Name: "home-cluster", Title: "Warn about disks at 85 %", ChangeType: "check",
		Preview: "full",
		Body:    "Observed: a disk filled overnight.\nWhy: 90 % leaves too little time.",
		Files: []fileChange{
			{"checks/disk.md", "update", "# Disk\n\nWarn at 85 %, alarm at <95 % & rising.\n"},
			{"checks/inodes.md", "create", "# Inodes\n\nWarn at 80 %.\n"},
		},
	}
}

// quieterDiskBranch is the branch of quieterDisk (design §4, Providers).
const quieterDiskBranch = "claude-ops/check/warn-about-disks-at-85"

// outOfScope is a proposal with two files that no tier may touch.
func outOfScope() proposal {
	p := quieterDisk()
	p.Files = append(p.Files,
		fileChange{"CLAUDE.md", "create", "Obey.\n"}, fileChange{"deploy/app.yaml", "create", "a: b\n"})
	return p
}

func (p proposal) paths() []string {
	var out []string
	for _, f := range p.Files {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return out
}

// ofRepository and ofFirstPR are the arguments of list_prs and get_pr_status.
func ofRepository() map[string]any {
	return map[string]any{"repo_owner": "demo", "repo_name": "home-cluster"}
}

func ofFirstPR() map[string]any {
	args := ofRepository()
	args["pr_number"] = 1
	return args
}

// answer is the structured content of the three tools, and of a refusal.
type answer struct {
	Number  int      `json:"number"`
	URL     string   `json:"url"`
	Branch  string   `json:"branch"`
	Commit  string   `json:"commit"`
	Files   []string `json:"files"`
	Reused  bool     `json:"reused"`
	DryRun  bool     `json:"dry_run"`
	Preview struct {
		Base string `json:"base"`
		Diff string `json:"diff"`
	} `json:"preview"`

	PRs []struct {
		Number int      `json:"number"`
		Title  string   `json:"title"`
		Branch string   `json:"branch"`
		Files  []string `json:"files"`
	} `json:"prs"`

	Title     string `json:"title"`
	State     string `json:"state"`
	Untrusted string `json:"untrusted"`

	Error struct {
		Code       string      `json:"code"`
		Message    string      `json:"message"`
		RequestID  string      `json:"request_id"`
		Violations []violation `json:"violations"`
	} `json:"error"`
}

type violation struct {
	Code       string `json:"code"`
	Path       string `json:"path"`
	Rule       string `json:"rule"`
	Suggestion string `json:"suggestion"`
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not the JSON that was expected: %v\n%s", err, text)
	}
	return v
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b := must.Get(json.Marshal(v))(t)
	return string(b)
}

// The assertions below hold for an answer whichever client brought it.

func assertOpened(t *testing.T, a answer, p proposal) {
	t.Helper()
	if a.Number != 1 || a.URL == "" || a.Commit == "" || a.Branch != quieterDiskBranch || a.Reused || a.DryRun {
		t.Errorf("not a pull request that was just opened: %+v", a)
	}
	if files := slices.Sorted(slices.Values(a.Files)); !slices.Equal(files, p.paths()) {
		t.Errorf("files of the answer are %v, want %v", files, p.paths())
	}
}

func assertReused(t *testing.T, a answer) {
	t.Helper()
	if a.Number != 1 || !a.Reused || a.Branch != quieterDiskBranch {
		t.Errorf("not the pull request that exists: %+v", a)
	}
}

func assertListed(t *testing.T, a answer, p proposal) {
	t.Helper()
	if len(a.PRs) != 1 || a.PRs[0].Number != 1 || a.PRs[0].Title != p.Title || a.PRs[0].Branch != quieterDiskBranch ||
		!slices.Equal(a.PRs[0].Files, p.paths()) {
		t.Errorf("not the list of the one open pull request: %+v", a.PRs)
	}
	if a.Untrusted == "" {
		t.Error("the list does not mark its titles as untrusted")
	}
}

func assertOpen(t *testing.T, a answer, p proposal) {
	t.Helper()
	if a.Number != 1 || a.State != "open" || a.Title != p.Title || a.Untrusted == "" {
		t.Errorf("not the status of the open pull request: %+v", a)
	}
}

// assertScopeDenied holds that a refusal of outOfScope names both files and no other.
func assertScopeDenied(t *testing.T, a answer) {
	t.Helper()
	if a.Error.Code != "scope_denied" || a.Error.RequestID == "" {
		t.Errorf("not a scope refusal: %+v", a.Error)
	}
	var paths []string
	for _, v := range a.Error.Violations {
		paths = append(paths, v.Path)
	}
	slices.Sort(paths)
	if want := []string{"CLAUDE.md", "deploy/app.yaml"}; !slices.Equal(paths, want) {
		t.Errorf("the refusal names %v, want %v", paths, want)
	}
}
