//go:build linux

package crash

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// testsAtOnce limits the parallel tests that run at a time, on however few cores.
const testsAtOnce = 12

// TestMain puts a copy of this test binary, which is claudeops by its name, first on PATH. It fails the run if a
// process outlives the tests. Other copies of the test binary do other things: see doomed and slowGit.
func TestMain(m *testing.M) {
	if spec := os.Getenv(doomedVariable); spec != "" {
		os.Exit(runDoomed(spec))
	}
	switch filepath.Base(os.Args[0]) {
	case "claudeops":
		os.Exit(cli.Main())
	case "git":
		os.Exit(runSlowGit(filepath.Dir(os.Args[0]), os.Args[1:]))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	folder, err := os.MkdirTemp("", "claudeops-crash-")
	if err != nil {
		return complain("%v", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	defer dropDatabases()
	prepared.folder = filepath.Join(folder, "worlds")
	binary := filepath.Join(folder, "bin", "claudeops")
	if err := copyProgram(binary); err != nil {
		return complain("%v", err)
	}
	if err := os.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return complain("%v", err)
	}
	// These tests wait for processes and disks far more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(max(testsAtOnce, runtime.GOMAXPROCS(0)))); err != nil {
		return complain("%v", err)
	}
	code := m.Run()
	if left := outlast(func() []int { return linkedTo("exe", binary) }, patience); len(left) > 0 {
		return complain("processes that outlived the tests, now killed: %v", left)
	}
	return code
}

// copyProgram gives this test binary another name.
func copyProgram(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if os.Link(self, path) == nil {
		return nil
	}
	text, err := os.ReadFile(self) // it is on another disk
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o700)
}

func complain(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "crash: "+format+"\n", args...)
	return 1
}

// world is one operator's machine: a local root with one bare repository, a state folder, a policy, and a store that
// looks at the records, which are made by others.
type world struct {
	dir      string
	repo     string // the bare repository
	database string // PostgreSQL URL, or ""
	observer *store.Store
}

// policyText raises the caps, and lets a closed change come back, so that rounds do not wait for each other.
const policyText = "version: 1\ncaps: {open_prs: 1000, creations_per_hour: 1000}\ncooldown_hours: 0\n"

// prepared are worlds in which something was done once, by the name of what, for many tests.
var prepared struct {
	sync.Mutex
	folder string
	worlds map[string]*preparedWorld
}

type preparedWorld struct {
	once     sync.Once
	dir      string
	database string // its name; "" for none
	done     bool
}

// preparedAs returns the prepared world of the name, which may have to be made.
func preparedAs(what string) *preparedWorld {
	prepared.Lock()
	defer prepared.Unlock()
	p := prepared.worlds[what]
	if p == nil {
		p = &preparedWorld{dir: filepath.Join(prepared.folder, strconv.Itoa(len(prepared.worlds)))}
		if prepared.worlds == nil {
			prepared.worlds = map[string]*preparedWorld{}
		}
		prepared.worlds[what] = p
	}
	return p
}

// worldAfter is a world as before makes it, in which something was done. If shared, it is done once for all tests that
// name it alike: the first one goes on in that world, and others in copies of what its processes have left.
func worldAfter(t *testing.T, what string, shared bool, before func(*testing.T) *world, do func(*testing.T,
	*world)) *world {
	t.Helper()
	if !shared {
		w := before(t)
		do(t, w)
		return w
	}
	p, first := preparedAs(what), (*world)(nil)
	p.once.Do(func() {
		first = before(t)
		do(t, first)
		first.close(t)
		copyTree(t, first.dir, p.dir)
		p.database = copyDatabase(t, first.database)
		p.done = true
	})
	switch {
	case first != nil:
		return first
	case !p.done:
		t.Fatalf("%q could not be done: the test that came to it first says why", what)
	}
	w := placeOf(t, p.database)
	copyTree(t, p.dir, w.dir)
	return w
}

// copyTree copies a folder with what is in it; the copy may be there.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if d.IsDir() {
			return os.MkdirAll(target, info.Mode().Perm())
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// placeOf is a folder for a world, with a copy of the database of that name. It checks at the end of the test that no
// process of it is left. It locks the test to its thread; see prepare.
func placeOf(t *testing.T, database string) *world {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: dir, repo: filepath.Join(dir, "root", repoKey+".git"), database: newDatabase(t, database)}
	t.Cleanup(func() {
		w.close(t)
		if left := outlast(func() []int { return linkedTo("cwd", dir) }, patience); len(left) > 0 {
			t.Errorf("processes that were left behind, now killed: %v", left)
		}
	})
	return w
}

// close ends the look at the records.
func (w *world) close(t *testing.T) {
	t.Helper()
	if w.observer != nil {
		_ = w.observer.Close() // it only read
		w.observer = nil
	}
}

// newWorld is a world whose records are made and empty.
func newWorld(t *testing.T) *world {
	t.Helper()
	return worldAfter(t, "records made", true, newPlace, func(t *testing.T, w *world) {
		w.store(t)
		if _, err := config.LoadMarkKey(w.at("state")); err != nil {
			t.Fatal(err)
		}
	})
}

// newPlace is a world without records.
func newPlace(t *testing.T) *world {
	t.Helper()
	w := placeOf(t, "")
	for _, d := range []string{w.repo, w.at("tmp"), w.at("repos")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.setPolicy(t, policyText)
	w.git(t, "", "init", "--quiet", "--template=", "--bare", "--initial-branch=main")
	w.git(t, importStream(map[string]string{"CLAUDE-OPS.md": "# Home cluster\n", "checks/disk.md": "# Disk\n"}),
		"fast-import", "--quiet")
	return w
}

func (w *world) setPolicy(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.at("policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) at(name string) string { return filepath.Join(w.dir, name) }

// importStream is one commit on main for git-fast-import(1).
func importStream(files map[string]string) string {
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter Operator <operator@example.invalid> 1767225600 +0000\ndata 5\nSeed\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	return b.String()
}

// environment is all that claudeops sees of the process environment.
func (w *world) environment() []string {
	env := []string{ // PATH is the first
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "USER=operator", "TMPDIR=" + w.at("tmp"), "CLAUDEOPS_TIER=2",
		"CLAUDEOPS_LOCAL_ROOT=" + w.at("root"), "CLAUDEOPS_REPOS_DIR=" + w.at("repos"),
		"CLAUDEOPS_STATE_DIR=" + w.at("state"), "CLAUDEOPS_POLICY=" + w.at("policy.yaml"),
		"GOGC=" + os.Getenv("GOGC"), // as make test has it: short processes spend much on garbage
	}
	if w.database != "" {
		env = append(env, "CLAUDEOPS_DATABASE_URL="+w.database)
	}
	return env
}

// git runs git in the repository as its owner would, and returns what it prints.
func (w *world) git(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = w.repo, strings.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// branches maps the branches beside main to their tips.
func (w *world) branches(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.git(t, "", "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)")) {
		name, tip, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "main" {
			out[name] = tip
		}
	}
	return out
}

// store is open from the first look on.
func (w *world) store(t *testing.T) *store.Store {
	t.Helper()
	if w.observer == nil {
		s, err := store.Open(t.Context(), w.at("state"), store.Options{
			DatabaseURL: w.database, LocalRoot: func() string { return local.RootIdentity(w.at("root")) },
		})
		if err != nil {
			t.Fatal(err)
		}
		w.observer = s
	}
	return w.observer
}

// pulls returns the recorded pull requests in a state ("" for all).
func (w *world) pulls(t *testing.T, state gitprovider.State) []gitprovider.PullRequest {
	t.Helper()
	prs, err := w.store(t).LocalPulls.PRs(t.Context(), repoKey, state)
	if err != nil {
		t.Fatal(err)
	}
	return prs
}

// first returns the recorded #1, with its reviews.
func (w *world) first(t *testing.T) (gitprovider.PullRequest, []gitprovider.Review) {
	t.Helper()
	pr, reviews, err := w.store(t).LocalPulls.PR(t.Context(), repoKey, 1)
	if err != nil {
		t.Fatal(err)
	}
	return pr, reviews
}

// count counts rows of the audit.
func (w *world) count(t *testing.T, counts func(record.RecordedAttempt) bool) (n int) {
	t.Helper()
	for _, a := range w.attempts(t) {
		if counts(a) {
			n++
		}
	}
	return n
}

// attempts returns all rows of the audit, oldest first.
func (w *world) attempts(t *testing.T) []record.RecordedAttempt {
	t.Helper()
	var all []record.RecordedAttempt
	for {
		query := record.AuditQuery{Ascending: true, Limit: record.MaxAuditLimit}
		if len(all) > 0 {
			query.After = all[len(all)-1].Seq
		}
		page, err := w.store(t).Audit.Page(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < record.MaxAuditLimit {
			return all
		}
	}
}

// lockFiles lists git's lock files in the repository. Temporary files may go away meanwhile: git commands outlive the
// process that started them.
func (w *world) lockFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(w.repo, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			out = append(out, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// end does what a person does with a pull request: merge it or turn it down, and remove its branch.
func (w *world) end(t *testing.T, pr gitprovider.PullRequest, how gitprovider.State) {
	t.Helper()
	script := "delete refs/heads/" + pr.Branch + " " + pr.HeadCommit + "\n"
	if how == gitprovider.StateMerged {
		script += "update refs/heads/main " + pr.HeadCommit + "\n"
	}
	w.git(t, script, "update-ref", "--stdin")
	err := w.store(t).LocalPulls.UpdatePR(t.Context(), repoKey, pr.Number, func(pr *gitprovider.PullRequest) error {
		pr.State, pr.ClosedAt = how, time.Now().UTC()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lookup reads the environment of claudeops.
func (w *world) lookup(name string) (string, bool) {
	for _, variable := range w.environment() {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// config is what claudeops reads of its environment.
func (w *world) config() config.Config {
	return config.Load(config.Environment(w.lookup), forges.All())
}

const (
	repoOwner = "demo"
	repoName  = "home-cluster"
	repoKey   = repoOwner + "/" + repoName
)

// request is the arguments of create_pr.
type request struct {
	Owner      string `json:"repo_owner"`
	Name       string `json:"repo_name"`
	Title      string `json:"title"`
	Body       string `json:"body"`
	ChangeType string `json:"change_type"`
	Revises    int    `json:"revises,omitempty"`
	Reply      string `json:"reply,omitempty"`

	Replies []reply `json:"replies,omitempty"`
	Files   []file  `json:"files"`
}

type reply struct {
	Comment string `json:"comment"`
	Text    string `json:"text"`
}

type file struct {
	Path    string `json:"path"`
	Action  string `json:"action"`
	Content string `json:"content"`
}

// newCheck proposes to add one check. Two requests for the same path overlap; they are the same change if the content
// is the same, too.
func newCheck(title, path, content string) request {
	return request{
		Owner: repoOwner, Name: repoName, Title: title, ChangeType: "check",
		Body:  "Observed: a disk filled overnight.\nWhy: nobody looked.",
		Files: []file{{path, "create", content}},
	}
}

// answer is the structured content of create_pr.
type answer struct {
	Number  int      `json:"number"`
	URL     string   `json:"url"`
	Branch  string   `json:"branch"`
	Files   []string `json:"files"`
	Reused  bool     `json:"reused"`
	Revised bool     `json:"revised"`
	Replies int      `json:"replies"`
	Error   struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		Retryable  bool   `json:"retryable"`
		RetryAfter int    `json:"retry_after_seconds"`
		Existing   struct {
			Number int      `json:"number"`
			URL    string   `json:"url"`
			Paths  []string `json:"paths"`
		} `json:"existing_pr"`
	} `json:"error"`
}

// opened says that the answer is a pull request that this call opened.
func (a answer) opened() bool { return a.Error.Code == "" && a.Number > 0 && !a.Reused && !a.Revised }

// revised says that the answer is a pull request that this call added a commit to; reused revisions are revised, too.
func (a answer) revised() bool { return a.Error.Code == "" && a.Number > 0 && a.Revised && !a.Reused }

// about is the pull request that the answer leads to: the one opened or reused, or the one that is in the way.
func (a answer) about() (number int, url string) {
	if a.Error.Code == "duplicate_pr" {
		return a.Error.Existing.Number, a.Error.Existing.URL
	}
	return a.Number, a.URL
}

// The messages of a client.
const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"crash","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// callOf is the call of a tool that asks to be told of its progress.
func callOf(id int, tool string, arguments any) string {
	text, _ := json.Marshal(arguments) // strings always marshal
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"progressToken":"p%d"},`+
		`"name":%q,"arguments":%s}}`, id, id, tool, text)
}

// message is one line of a server: a response, or a notification of progress.
type message struct {
	ID     int    `json:"id"`
	Method string `json:"method"`
	Params struct {
		Message string `json:"message"`
	} `json:"params"`
	Result struct {
		Structured json.RawMessage `json:"structuredContent"`
	} `json:"result"`
	Error json.RawMessage `json:"error"` // of the protocol: the server refused or broke off the call
}

// assertSettled checks the invariants when no process works and everything that was left has been settled: nothing is
// reserved, every open pull request has its branch, and there is no other branch.
func (w *world) assertSettled(t *testing.T) {
	t.Helper()
	w.assertNothingReserved(t)
	branches := w.branches(t)
	for _, pr := range w.pulls(t, gitprovider.StateOpen) {
		if tip := branches[pr.Branch]; tip != pr.HeadCommit {
			t.Errorf("#%d is open with head %s, but its branch %s is at %q", pr.Number, pr.HeadCommit, pr.Branch, tip)
		}
		delete(branches, pr.Branch)
	}
	if len(branches) > 0 {
		t.Errorf("branches without an open pull request: %v", branches)
	}
}

// assertNothingReserved holds that no proposal waits to be settled.
func (w *world) assertNothingReserved(t *testing.T) {
	t.Helper()
	left, err := w.store(t).History.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		t.Errorf("the proposal %s on %s is still %s", p.ID, p.Branch, p.State)
	}
}

// assertOne holds that exactly one open pull request changes the path, that it is the one with the number, and that it
// is whole: one commit on top of main that changes exactly its files, to exactly the contents of the request, with the
// request's title and the labels.
func (w *world) assertOne(t *testing.T, number int, r request) gitprovider.PullRequest {
	t.Helper()
	var found []gitprovider.PullRequest
	for _, pr := range w.pulls(t, gitprovider.StateOpen) {
		if slices.Contains(pr.Paths, r.Files[0].Path) {
			found = append(found, pr)
		}
	}
	if len(found) != 1 || found[0].Number != number {
		t.Fatalf("open pull requests on %s: %v, want only #%d", r.Files[0].Path, found, number)
	}
	pr := found[0]
	if pr.Title != r.Title || !slices.Contains(pr.Labels, gitprovider.LabelOurs) || !strings.HasPrefix(pr.Body, r.Body) {
		t.Errorf("#%d is not what was asked for: title %q, labels %v, body %q", number, pr.Title, pr.Labels, pr.Body)
	}
	w.assertCommit(t, pr, r)
	return pr
}

// assertCommit holds that the branch of a pull request has one commit of its own, which adds exactly the files of the
// request, with exactly their contents.
func (w *world) assertCommit(t *testing.T, pr gitprovider.PullRequest, r request) {
	t.Helper()
	want := []string{pr.HeadCommit, ""}
	for _, f := range r.Files {
		blob := gitprovider.BlobID([]byte(f.Content), pr.HeadCommit)
		want = append(want, ":000000 100644 "+strings.Repeat("0", len(blob))+" "+blob+" A\t"+f.Path)
	}
	slices.Sort(want[2:])
	log := w.git(t, "", "log", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "main.."+pr.Branch)
	got := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(got) > 2 {
		slices.Sort(got[2:])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds\n%s\nwant\n%s", pr.Branch, log, strings.Join(want, "\n"))
	}
}

// assertWhole is the thorough look at the end: the audit verifies and has one row for the opening of each pull request,
// git finds the repository sound, and no lock is left in it.
func (w *world) assertWhole(t *testing.T) {
	t.Helper()
	if report, err := w.store(t).Audit.Verify(t.Context(), ""); err != nil || !report.OK() {
		t.Errorf("the audit: %+v, %v", report, err)
	}
	openings := map[int]int{}
	for _, a := range w.attempts(t) {
		if a.Outcome == record.OutcomeOpened {
			openings[a.PRNumber]++
		}
	}
	all := w.pulls(t, "")
	for _, pr := range all {
		if openings[pr.Number] != 1 {
			t.Errorf("#%d was opened once, and has %d rows of the audit that say so", pr.Number, openings[pr.Number])
		}
	}
	if len(openings) != len(all) {
		t.Errorf("the audit speaks of %d pull requests, there are %d", len(openings), len(all))
	}
	w.git(t, "", "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
	if left := w.lockFiles(t); len(left) > 0 {
		t.Errorf("locks of git were left: %v", left)
	}
}
