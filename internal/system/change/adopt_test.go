package change

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// adopted is a machine whose first deployment has taken the place of a person's file, which only its owner may read. A
// second one followed.
func adopted(t *testing.T) (m *machine, mine string) {
	t.Helper()
	m = newMachine(t, map[string]string{".claude/commands/mine.md": "a person's", ".claude/commands/same.md": "same"})
	mine = filepath.Join(m.project, ".claude", "commands", "mine.md")
	if err := os.Chmod(mine, 0o600); err != nil {
		t.Fatal(err)
	}
	m.deploy(map[string]string{"mine.md*": "1", "same.md": "same", "new.md": "1"})
	m.deploy(map[string]string{"mine.md": "2", "same.md": "same", "new.md": "2"})
	return m, mine
}

func hasMode(t *testing.T, name string, want os.FileMode) {
	t.Helper()
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
		t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
	}
}

// What was there before the first deployment has a snapshot of its own.
func TestARollbackToBeforeTheFirstDeployment(t *testing.T) {
	t.Parallel()
	m, mine := adopted(t)
	ids, err := m.state.IDs()
	if err != nil || len(ids) != 3 {
		t.Fatalf("%v, %v", ids, err)
	}
	first, err := m.state.Snapshot(ids[0])
	if err != nil || first.Kind != "initial" || first.Project != m.project || len(first.Steps)+len(first.Managed) != 0 {
		t.Errorf("%+v, %v", first, err)
	}
	m.rollback(first.ID)
	m.has(map[string]string{"mine.md": "a person's", "same.md": "same"})
	hasMode(t, mine, 0o600)
	if got := describePlan(m.plan(nil)); got != "" {
		t.Errorf("afterwards: %s", got)
	}
	m.rollback(ids[2])
	m.has(map[string]string{"mine.md": "2", "same.md": "same", "new.md": "2"})
}

// Of each project, with deployments from elsewhere before it.
func TestEachProjectHasASnapshotFromBefore(t *testing.T) {
	t.Parallel()
	a, b, _ := twoProjects(t)
	third := *b
	third.project = filepath.Join(filepath.Dir(b.project), "third")
	operationtest.WriteFiles(t, third.project, map[string]string{".claude/commands/mine.md": "a person's"})
	done := third.deploy(map[string]string{"mine.md": "x", "new.md": "x"})
	before := []map[string]string{a.tree(), b.tree()}
	third.rollback(done.Previous)
	third.has(map[string]string{"mine.md": "a person's"})
	if diff := cmp.Diff(before, []map[string]string{a.tree(), b.tree()}); diff != "" {
		t.Errorf("the other projects (-before +after):\n%s", diff)
	}
}

func TestAModuleThatGoesGivesBackWhatWasThere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *machine){
		"as it was deployed": func(*machine) {},
		"drifted": func(m *machine) {
			operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/mine.md": "drift"})
		},
		"deployed by a version that noted less": func(m *machine) {
			ids, err := m.state.IDs()
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				file := filepath.Join(m.state.dir, "snapshots", id+".json")
				text, err := os.ReadFile(file)
				var snap map[string]any
				if err != nil || json.Unmarshal(text, &snap) != nil {
					t.Fatal(err)
				}
				for _, f := range snap["managed_files"].([]any) {
					delete(f.(map[string]any), "original")
				}
				text, _ = json.Marshal(snap)
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					_ = os.Remove(file)
				}
			}
		},
	} {
		m, mine := adopted(t)
		change(m)
		p := m.plan(map[string]string{"same.md": "same"})
		if got := describePlan(p); got != "update mine.md managed_update, delete new.md" ||
			!strings.Contains(p.Changes[0].Reason, "comes back") {
			t.Errorf("%s: %s", name, got)
		}
		m.deploy(map[string]string{"same.md": "same"})
		m.has(map[string]string{"mine.md": "a person's", "same.md": "same"})
		hasMode(t, mine, 0o600)
		if name == "drifted" {
			if _, err := m.state.Kept(Hash([]byte("drift"))); err != nil {
				t.Errorf("the drift is lost: %v", err)
			}
		}
	}
}

// A file that a deployment made goes; one that was there with the same bytes stays, since it was a person's before.
func TestAFileThatWasThereWithTheSameBytesStays(t *testing.T) {
	t.Parallel()
	m, _ := adopted(t)
	m.deploy(nil)
	m.has(map[string]string{"mine.md": "a person's", "same.md": "same"})
	m.deploy(map[string]string{"new.md": "3"})
	m.deploy(nil)
	m.has(map[string]string{"mine.md": "a person's", "same.md": "same"})
}

// What cannot come back is said, and stops nothing.
func TestWhatCannotComeBackIsSaid(t *testing.T) {
	t.Parallel()
	m, _ := adopted(t)
	if err := os.Remove(filepath.Join(m.state.dir, "objects", Hash([]byte("a person's")))); err != nil {
		t.Fatal(err)
	}
	p := m.plan(nil)
	if got := describePlan(p); got != "delete mine.md, delete new.md" ||
		!strings.Contains(strings.Join(p.Warnings, ""), "cannot come back") {
		t.Errorf("%s, %v", got, p.Warnings)
	}
	m.deploy(nil)
	m.has(map[string]string{"same.md": "same"})
}

// A deployment that fails when its snapshot is written leaves none behind of what was there before.
func TestADeploymentThatFailsLeavesNoSnapshotFromBefore(t *testing.T) {
	m := newMachine(t, nil)
	e := m.engine()
	e.fails = func(step string) error {
		if step == "initial" {
			return errors.New("the disk is full")
		}
		return nil
	}
	if _, _, err := e.Apply(t.Context(), m.want(map[string]string{"a.md": "1"}), Approval{}); err == nil {
		t.Fatal("it did not fail")
	}
	m.deploy(map[string]string{"a.md": "1"})
	ids, err := m.state.IDs()
	if err != nil || len(ids) != 2 {
		t.Fatalf("%v, %v", ids, err)
	}
}
