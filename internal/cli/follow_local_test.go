package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// localWorld is a local repository joe/infra, and the environment for commands on it.
type localWorld struct {
	*testing.T
	repo string
	env  map[string]string
}

// emptyRecords is the database of a store without records.
var emptyRecords storetest.Template

func newLocalWorld(t *testing.T) *localWorld {
	t.Helper()
	root, state := t.TempDir(), t.TempDir()
	emptyRecords.Put(t, state)
	w := &localWorld{T: t, repo: filepath.Join(root, "joe", "infra.git"), env: map[string]string{
		"CLAUDEOPS_LOCAL_ROOT": root, "CLAUDEOPS_STATE_DIR": state, "CLAUDEOPS_TIER": "2",
		"PATH":                  os.Getenv("PATH"),
		"CLAUDEOPS_WEBHOOK_URL": "http://127.0.0.1:1/nobody-listens", "CLAUDEOPS_WEBHOOK_SECRET": "a-secret-for-notices",
	}}
	makeRepository(t, w.repo, streamOf("README.md", "# Infra\n"))
	return w
}

// repositories are functions that give a bare repository which is made once, by the stream of git fast-import for it.
var repositories sync.Map

// makeRepository makes a bare repository of a stream: git takes longer to make one than a copy does.
func makeRepository(t testing.TB, dir, stream string) {
	t.Helper()
	made, _ := repositories.LoadOrStore(stream, sync.OnceValues(func() (string, error) {
		folder, err := os.MkdirTemp(os.Getenv("CLAUDEOPS_TEST_SCRATCH"), "repository-")
		if err != nil {
			return "", err
		}
		for _, args := range [][]string{{"init", "--quiet", "--template=", "--bare", "--initial-branch=main"},
			{"fast-import", "--quiet"}} {
			cmd := exec.Command("git", append([]string{"--git-dir", folder}, args...)...)
			cmd.Stdin = strings.NewReader(stream)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("git %v: %w: %s", args, err, out)
			}
		}
		return folder, nil
	}))
	folder, err := made.(func() (string, error))()
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(folder))
	}
	must.Do(t, err)
}

// streamOf is a commit on main for git fast-import. files are pairs of a path and a text.
func streamOf(files ...string) string {
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter ann <ann@example.org> 1767225600 +0000\ndata 0\n")
	for i := 0; i < len(files); i += 2 {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", files[i], len(files[i+1]), files[i+1])
	}
	return b.String() + "\n"
}

func (w *localWorld) git(args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *localWorld) lookup(name string) (string, bool) { return valuesOf(w.env)(name) }

func (w *localWorld) run(args ...string) {
	w.Helper()
	if code, said := w.says(args...); code != 0 {
		w.Fatalf("%v: exit code %d: %s", args, code, said)
	}
}

func (w *localWorld) propose(name string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), name)
	must.Do(w, os.WriteFile(file, []byte("# "+name+"\n"), 0o600))
	w.run("pr", "create", "--repo", "joe/infra", "--title", name, "--body", "why", "--create", "checks/"+name+".md="+file)
}

func TestThePollSeesWhatIsMergedByHandAndTellsNobodyTwice(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.propose(name)
	}
	p := w.parts()
	follower := app.NewFollower(p)
	follower.Every = time.Nanosecond
	look := func(wantNotices int, want ...gitprovider.State) {
		t.Helper()
		if _, err := follower.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, state := range want {
			if r, found := w.pull(p, i+1); !found || r.State != state {
				t.Errorf("#%d: found %t, %s; want %s", i+1, found, r.State, state)
			}
		}
		counts, err := p.Store.Outbox.NoticeCounts(t.Context())
		if err != nil || counts.Pending != wantNotices {
			t.Errorf("%d notices wait, %v; want %d", counts.Pending, err, wantNotices)
		}
	}
	const open, merged, closed = gitprovider.StateOpen, gitprovider.StateMerged, gitprovider.StateClosed
	look(3, open, open, open)
	w.git("--git-dir", w.repo, "update-ref", "refs/heads/main",
		w.git("--git-dir", w.repo, "rev-parse", "claude-ops/fix/one"))
	look(4, merged, open, open)
	w.run("review", "merge", "2", "--repo", "joe/infra")
	look(5, merged, merged, open)
	w.run("review", "close", "3", "--repo", "joe/infra")
	look(6, merged, merged, closed)
}

// besideIt is another machine with the same records, and with a root of its own that has a repository of the same name.
func (w *localWorld) besideIt() *localWorld {
	w.Helper()
	root := w.TempDir()
	other := &localWorld{T: w.T, repo: filepath.Join(root, "joe", "infra.git"), env: maps.Clone(w.env)}
	other.env["CLAUDEOPS_LOCAL_ROOT"] = root
	w.git("clone", "--quiet", "--template=", "--bare", "--single-branch", "--branch", "main", w.repo, other.repo)
	return other
}

// parts are those of a process of this world.
func (w *localWorld) parts() *app.Parts {
	w.Helper()
	_, p := newProcess(w, w.env)
	return p
}

// says runs a command and returns its code and what it printed.
func (w *localWorld) says(args ...string) (int, string) {
	w.Helper()
	out, errs, code := runArgs(w, w.env, args...)
	return code, out + errs
}

func (w *localWorld) pull(p *app.Parts, number int) (record.PullRecord, bool) {
	w.Helper()
	r, found, err := p.Store.Pulls.FindPull(w.Context(), record.PullKey{Provider: "local", Owner: "joe", Repo: "infra",
		Number: number})
	must.Do(w, err)
	return r, found
}

// rounds does what serve does at intervals: it follows pull requests, settles and sweeps.
func (w *localWorld) rounds(p *app.Parts) {
	w.Helper()
	follower := app.NewFollower(p)
	follower.Every = time.Nanosecond
	if _, err := follower.Round(w.Context()); err != nil {
		w.Fatal(err)
	}
	if _, err := p.NewRounds().Sweep(w.Context()); err != nil {
		w.Fatal(err)
	}
	if _, err := p.Flow.Resume(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func TestAServerWithAnotherRootNeitherReadsNorJudgesALocalPullRequest(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	w.propose("one")
	other := w.besideIt()
	theirs := other.parts()
	other.rounds(theirs)
	if _, found := other.pull(theirs, 1); found {
		t.Error("the other server finds #1 in the records")
	}
	if _, out := other.says("pr", "list", "--repo", "joe/infra"); strings.Contains(out, "one") {
		t.Errorf("the other server lists it: %s", out)
	}
	for _, verb := range []string{"approve", "merge", "close"} {
		if code, out := other.says("review", verb, "1", "--repo", "joe/infra"); code == 0 {
			t.Errorf("review %s: %s", verb, out)
		}
	}
	other.propose("one") // no duplicate, no cooldown: it is another repository
	if r, found := other.pull(theirs, 1); !found || r.State != gitprovider.StateOpen {
		t.Errorf("the other server's own #1: %+v", r)
	}
	mine := w.parts()
	w.rounds(mine)
	if r, found := w.pull(mine, 1); !found || r.State != gitprovider.StateOpen {
		t.Errorf("the first server's #1: found %t, %+v", found, r)
	}
	w.run("review", "close", "1", "--repo", "joe/infra")
	other.rounds(theirs)
	if r, _ := other.pull(theirs, 1); r.State != gitprovider.StateOpen {
		t.Errorf("the other's #1 is %s", r.State)
	}
	other.propose("two") // the cooldown of the other root's file does not apply here
	report, err := mine.Store.Audit.Verify(t.Context(), "")
	if err != nil || !report.OK() {
		t.Errorf("the audit: %+v, %v", report, err)
	}
}

// A root that is moved takes its file along, and a state folder that is used with another root loses nothing.
func TestAMovedRootKeepsItsPullRequests(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	w.propose("one")
	other := w.besideIt()
	other.propose("other")
	root := w.env["CLAUDEOPS_LOCAL_ROOT"]
	moved := filepath.Join(t.TempDir(), "moved")
	must.Do(t, os.Rename(root, moved))
	w.env["CLAUDEOPS_LOCAL_ROOT"], w.repo = moved, filepath.Join(moved, "joe", "infra.git")
	p := w.parts()
	w.rounds(p)
	if r, found := w.pull(p, 1); !found || r.State != gitprovider.StateOpen || r.Title != "one" {
		t.Errorf("found %t, %+v", found, r)
	}
}

// A branch of ours whose records are lost goes away in a round of a server.
func TestAServersRoundsSettleWhatWasLeft(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	w.env["CLAUDEOPS_REPOS"] = "local:joe/infra"
	w.propose("old")
	must.Do(t, os.RemoveAll(w.env["CLAUDEOPS_STATE_DIR"]))
	p := w.parts()
	p.Flow.Clock.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	ticks := make(chan time.Time)
	rounds := p.NewRounds()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { rounds.Run(ctx, ticks); close(done) }()
	ticks <- time.Now()
	ticks <- time.Now() // the first round has ended
	end()
	<-done
	if left := w.git("-C", w.repo, "for-each-ref", "refs/heads/claude-ops/"); left != "" {
		t.Errorf("left: %s", left)
	}
}

func valuesOf(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// newProcess is a process with an environment, and its parts.
func newProcess(t testing.TB, env map[string]string) (*commandLine, *app.Parts) {
	t.Helper()
	a := &commandLine{streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, lookup: valuesOf(env)}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() {
		if err := a.program().Close(); err != nil {
			t.Error(err)
		}
	})
	return a, p
}

// runArgs runs a command, and returns what it printed and its exit code.
func runArgs(t testing.TB, env map[string]string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, valuesOf(env))
	return stdout.String(), stderr.String(), code
}
