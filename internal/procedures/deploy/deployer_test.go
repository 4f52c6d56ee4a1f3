package deploy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// world is a machine that deploys from joe/procedures, with the audit and the notices in memory.
type world struct {
	*forge
	rows   []record.RecordedAttempt
	events []record.Event
	now    time.Time
	broken error // of the ledger
	paused error // of a claim
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{forge: newForge(t), now: time.Now()}
	if err := w.round(); err != nil { // the first look
		t.Fatal(err)
	}
	return w
}

// merging are the files of a commit that changes the command.
func merging(text string) map[string]string {
	return map[string]string{"modules/fix.md": mergedCommand(text)}
}

func mergedCommand(text string) string { return "---\ndescription: Fix\n---\n" + text + "\n" }

// merged lands files, and lets the audit tell of it.
func (w *world) merged(number int, files map[string]string) {
	w.Helper()
	w.commit("main", files)
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

func (w *world) deploying() *Service { return NewService(w.settings) }

// deployer is that of a server that was just started.
func (w *world) deployer() *Deployer {
	service := w.deploying()
	return NewDeployer(DeployerOptions{
		Service: service, State: service.Engine().State(), Audit: w, Ledger: w, Notifier: w, Claim: w.claim,
		Redact: func(s string) string { return s },
		Log:    slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now }, NewID: func() string { return "id" },
	})
}

func (w *world) round() error { return w.deployer().Round(w.Context()) }

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
	due, err := w.deploying().Waiting()
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
	w.commit("main", merging("two"))
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
	w.merged(5, merging("three"))
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
	w.merged(1, merging("two"))
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
	w.merged(1, merging("two"))
	w.sees("mine", "files are there that were not deployed", "refused conflict")
	w.sees("mine", "files are there", "refused conflict") // told once
	w.now = w.now.Add(time.Hour)
	w.sees("mine", "files are there", "refused conflict")
	if due, err := w.deploying().Waiting(); err != nil || len(due.Adopt) != 1 || due.Code != AdoptConfirmRequired ||
		w.events[0] != record.EventDeployWaits {
		t.Errorf("%+v, %v, %v", due, err, w.events)
	}
	if list, err := w.deploying().Snapshots(1); err != nil || len(list) != 0 {
		t.Errorf("something was deployed: %v, %v", list, err)
	}
	apply(t, w.deploying(), fileset.Approval{Adopt: true})
	w.sees("two", "", "refused conflict", "done")
}

func TestAMergeWaitsForACheckoutThatAPersonHasChanged(t *testing.T) {
	w := newWorld(t)
	operationtest.WriteFiles(t, w.dir,
		map[string]string{"agentpack/repo/modules/fix.md": mergedCommand("mine, not committed")})
	w.merged(1, merging("two"))
	w.sees("", "files that no commit has", "refused conflict")
	text, err := os.ReadFile(filepath.Join(w.repo(), "modules", "fix.md"))
	if err != nil || string(text) != mergedCommand("mine, not committed") {
		t.Errorf("%q, %v", text, err)
	}
	git(w, w.repo(), "checkout", "-q", "--", "modules/fix.md")
	w.sees("", "files that no commit has", "refused conflict") // it is not tried all the time
	w.now = w.now.Add(6 * time.Minute)
	w.sees("two", "", "refused conflict", "done")
}

func TestAServerThatWritesNothingDeploysNothing(t *testing.T) {
	w := newWorld(t)
	w.settings.NoWriting = func() string { return "this is a dry run" }
	w.merged(1, merging("two"))
	w.sees("", "this is a dry run", "refused read_only")
	w.settings.NoWriting = nil
	w.now = w.now.Add(6 * time.Minute)
	w.sees("two", "", "refused read_only", "done")
}

func TestAServerThatEndsGoesOnAtItsNextStart(t *testing.T) {
	w := newWorld(t)
	w.broken = fault.New(fault.Internal, "the database is away")
	w.merged(1, merging("two"))
	if err := w.round(); !errors.Is(err, w.broken) {
		t.Errorf("deployed, and not recorded: %v", err)
	}
	w.broken = nil
	w.sees("two", "", "done")
	if last := w.rows[len(w.rows)-1]; !strings.Contains(last.Message, "in place already") {
		t.Errorf("%s", last.Message)
	}
	operationtest.WriteFiles(t, w.dir, map[string]string{"agentpack/state/merges.json": "{"})
	w.commit("main", merging("three"))
	w.sees("two", "", "done") // begins anew
	w.merged(2, merging("four"))
	w.sees("four", "", "done", "done")
	w.rows = w.rows[:1] // other records: what they tell is not ours
	w.events = nil
	w.sees("four", "")
}

func TestOneProcessOfAMachineDeploysMerges(t *testing.T) {
	w := newWorld(t)
	unlock, ok, err := LockMerges(w.deploying().Engine().State())
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	w.merged(1, merging("two"))
	w.sees("", "")
	unlock()
	w.sees("two", "", "done")
}

func TestKeepEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.merged(1, merging("two"))
	ctx, stop := context.WithCancel(t.Context())
	w.deployer().Keep(ctx, func(time.Duration) <-chan time.Time {
		stop()
		return nil
	})
	w.sees("two", "", "done") // what is left is done at the next start
}
