//go:build linux

package crash

import (
	"os"
	"strings"
	"testing"
	"time"
)

// loseState removes the state folder: the key of the marks, and with SQLite the records.
func (w *world) loseState(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(w.at("state")); err != nil {
		t.Fatal(err)
	}
}

func TestKillAtEveryStepWithTheStateFolderLost(t *testing.T) {
	for _, step := range steps() {
		t.Run("killed when "+step.step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
			w.doom(t, doomed{Step: step.step, Request: r})
			w.loseState(t)
			began := time.Now()
			if a := w.asked(t, r); a.Number != 1 {
				t.Errorf("want #1: %+v", a)
			}
			if took := time.Since(began); took > atOnce {
				t.Errorf("it took %v: somebody waited for the dead", took)
			}
			w.assertOne(t, 1, r)
			w.assertSettled(t)
			w.assertWhole(t)
		})
	}
}

func TestResumeRemovesABranchWhoseRecordsAreLost(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.at("policy.yaml"), []byte(policyText+"repositories: [\"local:"+repoKey+"\"]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	r := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
	w.doom(t, doomed{Step: "commit recorded", Ago: 2 * time.Hour, Request: r})
	if len(w.branches(t)) != 1 {
		t.Fatalf("branches %v", w.branches(t))
	}
	w.loseState(t)
	out := w.run(t, "pr", "resume")
	if len(w.branches(t)) != 0 || !strings.Contains(out, "claude-ops/") && w.database == "" {
		t.Errorf("branches %v\n%s", w.branches(t), out)
	}
	w.assertSettled(t)
	if a := w.asked(t, r); !a.opened() || a.Number != 1 {
		t.Errorf("want #1: %+v", a)
	}
	w.assertOne(t, 1, r)
	w.assertWhole(t)
}
