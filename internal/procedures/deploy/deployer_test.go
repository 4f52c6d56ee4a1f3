package deploy_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

const mergedConfiguration = `version: 1
profiles: {default: {include_tags: [base]}}
targets: {claude_code: {scope: project}}
modules:
  - {id: "command:fix", type: command, tags: [base], source: {local_path: {path: fix.md}}}
`

// world is a machine that deploys from joe/procedures, with the audit and the notices in memory.
type world struct {
	*testing.T
	dir      string
	settings deploy.Settings
	rows     []record.RecordedAttempt
	events   []record.Event
	now      time.Time
	broken   error // of the ledger
	paused   error // of a claim
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: dir, now: time.Now()}
	w.settings = deploy.Settings{
		Home: filepath.Join(dir, "agentpack"), UserHome: filepath.Join(dir, "user"), Folder: filepath.Join(dir, "project"),
		Git: deploy.GitCommand{Path: program, Env: []string{"PATH=" + os.Getenv("PATH")}}, Now: time.Now,
	}
	operationtest.WriteFiles(t, dir, map[string]string{"user/.keep": "", "project/.keep": "", "agentpack/.keep": "",
		"forge/joe/.keep": ""})
	w.git(dir, "init", "-q", "--bare", "-b", "main", filepath.Join(dir, "forge", "joe", "procedures.git"))
	w.git(dir, "clone", "-q", filepath.Join(dir, "forge", "joe", "procedures.git"), "work")
	w.land(map[string]string{"agentpack.yaml": mergedConfiguration, "fix.md": mergedCommand("one")})
	w.git(dir, "clone", "-q", filepath.Join(dir, "forge", "joe", "procedures.git"),
		filepath.Join(dir, "agentpack", "repo"))
	w.round() // the first look
	return w
}

func mergedCommand(text string) string { return "---\ndescription: Fix\n---\n" + text + "\n" }

func (w *world) git(dir string, args ...string) {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// land puts a commit on the remote branch, as a merge does.
func (w *world) land(files map[string]string) {
	w.Helper()
	work := filepath.Join(w.dir, "work")
	operationtest.WriteFiles(w, work, files)
	w.git(work, "checkout", "-q", "-B", "main")
	w.git(work, "add", "-A")
	w.git(work, "commit", "-q", "-m", "x")
	w.git(work, "push", "-q", "origin", "main")
}

// merged lands files, and lets the audit tell of it.
func (w *world) merged(number int, files map[string]string) {
	w.Helper()
	w.land(files)
	w.tell(record.ActionPullMerged, "procedures", number, record.OutcomeDone)
}

func (w *world) tell(action, repo string, number int, outcome record.Outcome) {
	w.add(record.Attempt{Action: action, Provider: "gitea", Owner: "joe", Repo: repo, PRNumber: number, Title: "Fix it",
		Outcome: outcome})
}

func (w *world) add(a record.Attempt) {
	w.rows = append(w.rows, record.RecordedAttempt{Seq: int64(len(w.rows) + 1), Attempt: a})
}

func (w *world) Head(context.Context) (int64, string, error) { return int64(len(w.rows)), "", nil }

func (w *world) Page(_ context.Context, q record.AuditQuery) ([]record.RecordedAttempt, error) {
	return w.rows[q.After:], nil
}

func (w *world) Record(_ context.Context, a record.Attempt, _ *record.Proposal, notices ...record.Notice) error {
	if w.broken != nil {
		return w.broken
	}
	w.add(a)
	for _, n := range notices {
		w.events = append(w.events, n.Event)
	}
	return nil
}

func (w *world) Notices(event record.Event, _ record.Attempt) []record.Notice {
	return []record.Notice{{Event: event}}
}
func (w *world) Kick(context.Context) {}

// claim is refused while the world is paused.
func (w *world) claim(context.Context) (func(), error) { return func() {}, w.paused }

func (w *world) service() *deploy.Service { return deploy.NewService(w.settings) }

// round is a round of a server that was just started.
func (w *world) round() error {
	service := w.service()
	return deploy.NewDeployer(deploy.DeployerOptions{
		Service: service, State: service.Engine().State(), Audit: w, Ledger: w, Notifier: w, Claim: w.claim,
		Redact: func(s string) string { return s },
		Log:    slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now }, NewID: func() string { return "id" },
	}).Round(w.Context())
}

// sees holds the deployed command, what was recorded and told, and the reason for which a merge waits.
func (w *world) sees(deployed, why string, rows ...string) {
	w.Helper()
	if err := w.round(); err != nil {
		w.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "project", ".claude", "commands", "fix.md"))
	if got := strings.TrimSuffix(strings.TrimPrefix(string(text), "---\ndescription: Fix\n---\n"),
		"\n"); got != deployed || err != nil && deployed != "" {
		w.Errorf("deployed is %q, %v; want %q", got, err, deployed)
	}
	var got []string
	for _, r := range w.rows {
		if r.Action == record.ActionDeployMerge {
			got = append(got, strings.TrimSuffix(string(r.Outcome)+" "+string(r.Code), " "))
		}
	}
	if diff := cmp.Diff(rows, got); diff != "" || len(w.events) != len(got) {
		w.Errorf("recorded (-want +got):\n%s%v", diff, w.events)
	}
	due, err := w.service().Waiting()
	switch {
	case err != nil:
		w.Error(err)
	case (due == nil) != (why == ""):
		w.Errorf("waits: %+v, want %q", due, why)
	case due != nil && !strings.Contains(due.Why, why):
		w.Errorf("waits: %s, want %q", due.Why, why)
	}
}

func TestAMergeIsDeployedOnce(t *testing.T) {
	w := newWorld(t)
	w.land(map[string]string{"fix.md": mergedCommand("two")})
	w.sees("", "") // no merge was reported
	w.tell(record.ActionPullMerged, "other", 1, record.OutcomeDone)
	w.tell("review.merge", "procedures", 2, record.OutcomeRefused)
	w.tell(record.ActionPullClosed, "procedures", 3, record.OutcomeDone)
	w.sees("", "")
	w.tell("review.merge", "procedures", 4, record.OutcomeDone)
	w.tell(record.ActionPullMerged, "procedures", 4, record.OutcomeDone)
	w.sees("two", "", "done")
	w.tell(record.ActionPullMerged, "procedures", 4, record.OutcomeDone)
	w.sees("two", "", "done")
	w.merged(5, map[string]string{"fix.md": mergedCommand("three")})
	w.sees("three", "", "done", "done")
	if w.events[1] != record.EventDeployed {
		t.Errorf("%v", w.events)
	}
	if last := w.rows[len(w.rows)-1]; last.PRNumber != 5 || !strings.Contains(last.Message, "snapshot") ||
		len(last.Paths) != 1 {
		t.Errorf("%+v", last)
	}
}

func TestAMergeIsNotDeployedWhileAPersonHasPaused(t *testing.T) {
	w := newWorld(t)
	w.sees("", "")
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	w.paused = fault.New(fault.Paused, "everything is paused")
	if err := w.round(); fault.CodeOf(err) != fault.Paused {
		t.Errorf("%v", err)
	}
	w.paused = nil
	w.sees("two", "", "done")
}

func TestAMergeThatWouldReplaceAPersonsFileWaits(t *testing.T) {
	w := newWorld(t)
	operationtest.WriteFiles(t, w.dir, map[string]string{"project/.claude/commands/fix.md": mergedCommand("mine")})
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	w.sees("mine", "files are there that were not deployed", "refused conflict")
	w.sees("mine", "files are there", "refused conflict") // told once
	w.now = w.now.Add(time.Hour)
	w.sees("mine", "files are there", "refused conflict")
	if due, err := w.service().Waiting(); err != nil || len(due.Adopt) != 1 || due.Code != deploy.AdoptConfirmRequired ||
		w.events[0] != record.EventDeployWaits {
		t.Errorf("%+v, %v, %v", due, err, w.events)
	}
	if list, err := w.service().Snapshots(1); err != nil || len(list) != 0 {
		t.Errorf("something was deployed: %v, %v", list, err)
	}
	if _, _, err := w.service().Apply(t.Context(), deploy.Request{}, fileset.Approval{Adopt: true}, false); err != nil {
		t.Fatal(err)
	}
	w.sees("two", "", "refused conflict", "done")
}

func TestAMergeWaitsForACheckoutThatAPersonHasChanged(t *testing.T) {
	w := newWorld(t)
	operationtest.WriteFiles(t, w.dir, map[string]string{"agentpack/repo/fix.md": mergedCommand("mine, not committed")})
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	w.sees("", "files that no commit has", "refused conflict")
	text, err := os.ReadFile(filepath.Join(w.dir, "agentpack", "repo", "fix.md"))
	if err != nil || string(text) != mergedCommand("mine, not committed") {
		t.Errorf("%q, %v", text, err)
	}
	w.git(filepath.Join(w.dir, "agentpack", "repo"), "checkout", "-q", "--", "fix.md")
	w.sees("", "files that no commit has", "refused conflict") // it is not tried all the time
	w.now = w.now.Add(6 * time.Minute)
	w.sees("two", "", "refused conflict", "done")
}

func TestAServerThatWritesNothingDeploysNothing(t *testing.T) {
	w := newWorld(t)
	w.settings.NoWriting = func() string { return "this is a dry run" }
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	w.sees("", "this is a dry run", "refused read_only")
	w.settings.NoWriting = nil
	w.now = w.now.Add(6 * time.Minute)
	w.sees("two", "", "refused read_only", "done")
}

func TestAServerThatEndsGoesOnAtItsNextStart(t *testing.T) {
	w := newWorld(t)
	w.broken = fault.New(fault.Internal, "the database is away")
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	if err := w.round(); !errors.Is(err, w.broken) {
		t.Errorf("deployed, and not recorded: %v", err)
	}
	w.broken = nil
	w.sees("two", "", "done")
	if last := w.rows[len(w.rows)-1]; !strings.Contains(last.Message, "in place already") {
		t.Errorf("%s", last.Message)
	}
	operationtest.WriteFiles(t, w.dir, map[string]string{"agentpack/state/merges.json": "{"})
	w.land(map[string]string{"fix.md": mergedCommand("three")})
	w.sees("two", "", "done") // begins anew
	w.merged(2, map[string]string{"fix.md": mergedCommand("four")})
	w.sees("four", "", "done", "done")
	w.rows = w.rows[:1] // other records: what they tell is not ours
	w.events = nil
	w.sees("four", "")
}

func TestOneProcessOfAMachineDeploysMerges(t *testing.T) {
	w := newWorld(t)
	unlock, ok, err := deploy.LockMerges(w.service().Engine().State())
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	w.sees("", "")
	unlock()
	w.sees("two", "", "done")
}

func TestKeepEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.merged(1, map[string]string{"fix.md": mergedCommand("two")})
	ctx, stop := context.WithCancel(t.Context())
	service := w.service()
	d := deploy.NewDeployer(deploy.DeployerOptions{
		Service: service, State: service.Engine().State(), Audit: w, Ledger: w, Notifier: w, Claim: w.claim,
		Redact: func(s string) string { return s },
		Log:    slog.New(slog.DiscardHandler), Now: time.Now, NewID: func() string { return "id" },
	})
	d.Keep(ctx, func(time.Duration) <-chan time.Time {
		stop()
		return nil
	})
	w.sees("two", "", "done") // what is left is done at the next start
}
