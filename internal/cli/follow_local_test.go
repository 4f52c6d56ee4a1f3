package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
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
	root, work, state := t.TempDir(), t.TempDir(), t.TempDir()
	emptyRecords.Put(t, state)
	w := &localWorld{T: t, repo: filepath.Join(root, "joe", "infra.git"), env: map[string]string{
		"CLAUDEOPS_LOCAL_ROOT": root, "CLAUDEOPS_STATE_DIR": state, "CLAUDEOPS_TIER": "2",
		"PATH":                  os.Getenv("PATH"),
		"CLAUDEOPS_WEBHOOK_URL": "http://127.0.0.1:1/nobody-listens", "CLAUDEOPS_WEBHOOK_SECRET": "a-secret-for-notices",
	}}
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# Infra\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git("init", "--quiet", "--template=", "--initial-branch=main", work)
	w.git("-C", work, "add", "--all")
	w.git("-C", work, "-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "first")
	w.git("clone", "--quiet", "--template=", "--bare", work, w.repo)
	return w
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

func (w *localWorld) lookup(name string) (string, bool) {
	value, found := w.env[name]
	return value, found
}

func (w *localWorld) run(args ...string) {
	w.Helper()
	var out, problems bytes.Buffer
	if code := Run(w.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &problems}, w.lookup); code != 0 {
		w.Fatalf("%v: exit code %d: %s%s", args, code, out.String(), problems.String())
	}
}

func (w *localWorld) propose(name string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), name)
	if err := os.WriteFile(file, []byte("# "+name+"\n"), 0o600); err != nil {
		w.Fatal(err)
	}
	w.run("pr", "create", "--repo", "joe/infra", "--title", name, "--body", "why", "--create", "checks/"+name+".md="+file)
}

func TestThePollSeesWhatIsMergedByHandAndTellsNobodyTwice(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.propose(name)
	}
	a := &commandLine{streams: Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}},
		lookup: w.lookup}
	defer func() {
		if err := a.program().Close(); err != nil {
			t.Error(err)
		}
	}()
	p := a.program().Wire(app.Needs{})
	follower := app.NewFollower(p)
	follower.Every = time.Nanosecond
	look := func(wantNotices int, want ...gitprovider.State) {
		t.Helper()
		if _, err := follower.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, state := range want {
			r, found, err := p.Store.Pulls.FindPull(t.Context(), record.PullKey{Provider: "local", Owner: "joe", Repo: "infra",
				Number: i + 1})
			if err != nil || !found || r.State != state {
				t.Errorf("#%d: found %t, %s, %v; want %s", i+1, found, r.State, err, state)
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
