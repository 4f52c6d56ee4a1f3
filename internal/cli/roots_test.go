package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// besideIt is another machine with the same records, and with a root of its own that has a repository of the same name.
func (w *localWorld) besideIt() *localWorld {
	w.Helper()
	root := w.TempDir()
	other := &localWorld{T: w.T, repo: filepath.Join(root, "joe", "infra.git"), env: map[string]string{}}
	for name, value := range w.env {
		other.env[name] = value
	}
	other.env["CLAUDEOPS_LOCAL_ROOT"] = root
	w.git("clone", "--quiet", "--template=", "--bare", "--single-branch", "--branch", "main", w.repo, other.repo)
	return other
}

// parts are those of a process of this world.
func (w *localWorld) parts() *app.Parts {
	w.Helper()
	a := &commandLine{streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, lookup: w.lookup}
	w.Cleanup(func() { _ = a.program().Close() })
	return a.program().Wire(app.Needs{})
}

// says runs a command and returns its code and what it printed.
func (w *localWorld) says(args ...string) (int, string) {
	w.Helper()
	var out bytes.Buffer
	code := Run(w.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &out}, w.lookup)
	return code, out.String()
}

func (w *localWorld) pull(p *app.Parts, number int) (record.PullRecord, bool) {
	w.Helper()
	r, found, err := p.Store.Pulls.FindPull(w.Context(), record.PullKey{Provider: "local", Owner: "joe", Repo: "infra",
		Number: number})
	if err != nil {
		w.Fatal(err)
	}
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
	if err := os.Rename(root, moved); err != nil {
		t.Fatal(err)
	}
	w.env["CLAUDEOPS_LOCAL_ROOT"], w.repo = moved, filepath.Join(moved, "joe", "infra.git")
	p := w.parts()
	w.rounds(p)
	if r, found := w.pull(p, 1); !found || r.State != gitprovider.StateOpen || r.Title != "one" {
		t.Errorf("found %t, %+v", found, r)
	}
}
