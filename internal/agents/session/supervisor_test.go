//go:build unix

package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAHandoffIsValidatedCappedAndShown(t *testing.T) {
	tests := []struct {
		name, act  string
		from, cap  gitprovider.Tier
		dry        bool
		ran        int
		escalation string
		problem    string
	}{
		{name: "up to the next tier", act: "to 2", from: 1, cap: 3, ran: 2, escalation: "escalated to tier 2"},
		{name: "up two tiers", act: "to 3", from: 1, cap: 3, ran: 2, escalation: "escalated to tier 3"},
		{name: "lowered by the cap", act: "to 3", from: 1, cap: 2, ran: 2,
			escalation: "escalated to tier 2: the handoff recommends tier 3"},
		{name: "held by the cap", act: "to 2", from: 1, cap: 1, ran: 1,
			escalation: "not escalated: the handoff recommends tier 2, and CLAUDEOPS_MAX_TIER is 1"},
		{name: "not higher", act: "to 1", from: 1, cap: 3, ran: 1,
			escalation: "not escalated: the handoff recommends tier 1"},
		{name: "dry run", act: "to 2", from: 1, cap: 3, dry: true, ran: 1, escalation: "not escalated: a dry run"},
		{name: "malformed", act: "malformed", from: 1, cap: 3, ran: 1, escalation: "cannot be used", problem: "JSON"},
		{name: "too large", act: "large", from: 1, cap: 3, ran: 1, escalation: "cannot be used",
			problem: "larger than 65536"},
		{name: "a link", act: "link", from: 1, cap: 3, ran: 1, escalation: "cannot be used",
			problem: "not a regular file"},
		{name: "a pipe", act: "fifo", from: 1, cap: 3, ran: 1, escalation: "cannot be used",
			problem: "not a regular file"},
		{name: "a folder", act: "folder", from: 1, cap: 3, ran: 1, escalation: "cannot be used",
			problem: "not a regular file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "handoff-"+test.act)
			w.runner.Settings.MaxTier, w.runner.Settings.DryRun = test.cap, func() bool { return test.dry }
			ran := w.supervised(t, Spec{Tier: test.from, Trigger: sessions.TriggerCommand})
			w.clean(t)
			if len(ran) != test.ran {
				t.Fatalf("%d sessions: %+v", len(ran), ran)
			}
			first := ran[0]
			if unusable := first.State == sessions.StateFailed &&
				strings.Contains(first.Reason, first.HandoffProblem); unusable != (test.problem != "") {
				t.Errorf("ended as %s: %s", first.State, first.Reason)
			}
			if !strings.Contains(first.Escalation, test.escalation) || !strings.Contains(first.HandoffProblem, test.problem) {
				t.Errorf("escalation %q, problem %q", first.Escalation, first.HandoffProblem)
			}
			if test.ran == 2 && (ran[1].Parent != first.ID || ran[1].ID != first.Next || ran[1].Received == nil ||
				ran[1].Trigger != sessions.TriggerEscalation || ran[1].Tier > test.cap) {
				t.Errorf("the next session is %+v", ran[1])
			}
		})
	}
}

// A person pauses everything while a session runs: it ends by itself, and what it hands over starts no other one.
func TestAHandoffStartsNoSessionWhileAPersonHasPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "handoff-to 2")
	w.saved = func(r sessions.Record) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Next != "" {
			w.faults["begin"] = fault.New(fault.Paused, "everything is paused")
		}
	}
	ran, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1})
	w.clean(t)
	if err != nil || len(ran) != 1 || ran[0].Next != "" || ran[0].State != sessions.StateSucceeded ||
		ran[0].Escalation != "not escalated: everything is paused" {
		t.Errorf("%v: %+v", err, ran)
	}
	if len(w.records) != 1 || w.records[0].Next != "" {
		t.Errorf("recorded %+v", w.records)
	}
}

func TestASessionDescendsFromWhoStartedItAndWhoseNoteItWasTold(t *testing.T) {
	w := newWorld(t, "handoff-to 2")
	w.runner.Settings.MaxTier = 3
	joe := record.OSUser("1000", "joe")
	schedule := record.Actor{Door: record.DoorPoll, System: record.SystemSchedule}
	for _, c := range []struct {
		name string
		spec Spec
		ran  int  // a finding is handed over once
		joes bool // joe stands behind it
	}{
		{"started by joe", Spec{Tier: 1, Starter: joe, Note: "look at dns"}, 2, true},
		{"told what that one left", Spec{Tier: 1, Starter: schedule}, 1, true},
		{"told what the scheduled one left", Spec{Tier: 1, Starter: schedule}, 1, false},
	} {
		all := w.supervised(t, c.spec)
		if len(all) != c.ran {
			t.Fatalf("%s: %d sessions", c.name, len(all))
		}
		for _, ran := range all {
			if got := joe.SecondTo(ran.Actor) != ""; got != c.joes {
				t.Errorf("%s, tier %s: joe stands behind it: %v, %+v", c.name, ran.Tier, got, ran.Actor.Lineage())
			}
		}
	}
}

func TestAHandoffHoldsNoToken(t *testing.T) {
	w := newWorld(t, "handoff-secret")
	record, err := w.run(t, Spec{Tier: 1})
	if err != nil || record.Handoff == nil || strings.Contains(record.Handoff.Findings[0].Text+
		record.Handoff.Findings[0].Key, ourToken) {
		t.Errorf("%+v, %v", record.Handoff, err)
	}
}

func TestAHandoffFolderThatIsGoneIsNoHandoff(t *testing.T) {
	w := newWorld(t, "exchanged")
	if record := w.succeeds(t, Spec{Tier: 1}); record.Handoff != nil {
		t.Errorf("%+v", record)
	}
}

func TestOneSessionRunsAtATime(t *testing.T) {
	w := newWorld(t, "hang")
	// the second is as good as another process: it has the lock file only
	here, there := NewSupervisor(w.runner), NewSupervisor(w.runner)
	id := must.Get(here.Start(t.Context(), Spec{Tier: 1}))(t)
	w.until(t, "ready")
	for _, s := range []*Supervisor{here, there} {
		_, err := s.Start(t.Context(), Spec{Tier: 1})
		wantCode(t, err, fault.Conflict, id)
	}
	if len(w.records) != 1 {
		t.Errorf("recorded %+v", w.records)
	}
	if current, running := here.Current(); !running || current != id {
		t.Errorf("current is %q, %t", current, running)
	}
	wantCode(t, there.Stop(t.Context(), "none"), fault.NotFound)
	must.Do(t, here.Stop(t.Context(), id))
	must.Do(t, here.Wait(t.Context()))
	w.clean(t)
	if r := w.records[0]; r.State != sessions.StateCancelled || r.Reason != "a person stopped it" {
		t.Errorf("recorded %+v", r)
	}
	wantCode(t, here.Stop(t.Context(), id), fault.Conflict, "has ended already")
	if _, running := here.Current(); running {
		t.Error("it counts as running still")
	}
	must.Get(there.Start(t.Context(), Spec{Tier: 1}))(t)
	there.Close()
	w.clean(t)
	_, err := there.Start(t.Context(), Spec{Tier: 1})
	wantCode(t, err, fault.Conflict, "shutting down")
}

func TestWhatAKilledSupervisorLeftIsRemoved(t *testing.T) {
	w := newWorld(t, "good")
	w.withDoors(tells)
	s := w.runner.Settings
	id := w.runner.NewID()
	leftFolder, other := s.Folders.sessionFolder(id), filepath.Join(s.Folders.Temp, "other")
	leftDoor := s.Server.doorFolder(s.Folders.Temp, id)
	l := must.Get(s.Folders.takeLock())(t)
	must.Do(t, l.writeContent(lockContent{Session: id, Folder: leftFolder, Door: leftDoor}))
	_ = l.file.Close() // as the kernel does it
	for _, dir := range []string{leftFolder, leftDoor, other} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, "private"), 0o700))
	}
	orphan := exec.CommandContext(t.Context(), w.runner.Settings.Claude.Binary)
	orphan.Env = []string{fakeMode + "=waits-deaf", runMark + "=" + id}
	must.Do(t, orphan.Start())
	w.supervised(t, Spec{Tier: 1})
	if err := orphan.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("a process of the killed supervisor's session ended with %v", err)
	}
	if _, err := os.Lstat(leftDoor); !os.IsNotExist(err) {
		t.Errorf("the folder of its door: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a folder that is not ours: %v", err)
	}
	_ = os.RemoveAll(other)
	w.clean(t)
}

func TestALockFileCannotPointElsewhere(t *testing.T) {
	w := newWorld(t, "good")
	victim := filepath.Join(w.dir, "repos")
	text := []byte(`{"session":"x","folder":"` + victim + `","door":"` + victim + `"}`)
	must.Do(t, os.WriteFile(filepath.Join(w.runner.Settings.Folders.State, lockName), text, 0o600))
	w.supervised(t, Spec{Tier: 1})
	if _, err := os.Stat(victim); err != nil {
		t.Errorf("removed: %v", err)
	}
}

func TestAStoreThatFailsLeavesTheLockFree(t *testing.T) {
	w := newWorld(t, "good")
	s := NewSupervisor(w.runner)
	for _, call := range []string{"close", "begin"} {
		w.faults = map[string]error{call: fault.Wrap(errFull, fault.Internal, "the disk is full")}
		_, err := s.Run(t.Context(), Spec{Tier: 1})
		wantCode(t, err, fault.Internal, "the disk is full")
	}
	w.faults = nil
	if ran, err := s.Run(t.Context(), Spec{Tier: 1}); err != nil || len(ran) != 1 {
		t.Errorf("%v, %v", ran, err)
	}
}

func TestASessionOfAnotherProcessIsStoppedThroughTheRecord(t *testing.T) {
	w := newWorld(t, "hang")
	here, there := NewSupervisor(w.runner), NewSupervisor(w.runner)
	id := must.Get(here.Start(t.Context(), Spec{Tier: 1}))(t)
	w.until(t, "ready")
	must.Do(t, there.Stop(t.Context(), id))
	must.Do(t, here.Wait(t.Context()))
	w.clean(t)
	if r := w.records[0]; r.State != sessions.StateCancelled || r.Reason != "a person stopped it" {
		t.Errorf("recorded %+v", r)
	}
	wantCode(t, there.Stop(t.Context(), id), fault.Conflict, "has ended already")
}
