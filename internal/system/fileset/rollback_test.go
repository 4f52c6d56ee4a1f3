package fileset

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// twoProjects are two projects of one user, with one ledger: in both two things were deployed, in turn.
func twoProjects(t *testing.T) (a, b *machine, first *Done) {
	t.Helper()
	b = newMachine(t, nil)
	other := *b
	a = &other
	a.project = filepath.Join(filepath.Dir(b.project), "other")
	operationtest.WriteFiles(t, a.project, map[string]string{".keep": ""})
	a.deploy(map[string]string{"a.md": "of A"})
	first = b.deploy(map[string]string{"b.md": "1"})
	a.deploy(map[string]string{"a.md": "of A, newer", "c.md": "of A"})
	b.deploy(map[string]string{"b.md": "2", "d.md": "2"})
	return a, b, first
}

func TestARollbackLeavesOtherProjectsAlone(t *testing.T) {
	t.Parallel()
	t.Run("in place", func(t *testing.T) {
		a, b, first := twoProjects(t)
		before := a.tree()
		b.rollback(first.ID)
		b.has(map[string]string{"b.md": "1"})
		a.unchanged("the other project", before)
	})
	t.Run("removed", func(t *testing.T) {
		a, b, first := twoProjects(t)
		must.Do(t, os.RemoveAll(a.project))
		b.rollback(first.ID)
		b.has(map[string]string{"b.md": "1"})
		if Exists(a.project) {
			t.Errorf("the other project was made again: %v", a.tree())
		}
	})
	t.Run("a link", func(t *testing.T) {
		a, b, first := twoProjects(t)
		outside := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".keep": ""})
		must.Do(t, os.RemoveAll(a.project))
		must.Do(t, os.Symlink(outside, a.project))
		b.rollback(first.ID)
		b.has(map[string]string{"b.md": "1"})
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("written through the link: %v, %v", entries, err)
		}
	})
}

// A snapshot is a moment: from another project it is gone back to there, and in the user's folders.
func TestARollbackToASnapshotOfAnotherProject(t *testing.T) {
	t.Parallel()
	a, b, first := twoProjects(t)
	before := b.tree()
	p, err := a.engine().PlanRollback(t.Context(), first.ID, a.reach())
	if err != nil || describePlan(p) != "update a.md managed_update, delete c.md" ||
		!strings.Contains(strings.Join(p.Warnings, ""), "is of the project "+b.project) {
		t.Errorf("%q, %v, %v", describePlan(p), p.Warnings, err)
	}
	a.rollback(first.ID)
	a.has(map[string]string{"a.md": "of A"})
	b.unchanged("the snapshot's project", before)
}

// A killed deployment is finished by the next call, of whatever project; but not through a link that its project has
// become meanwhile.
func TestWhatWasCutOffIsNotFinishedThroughALink(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	e := m.engine()
	e.dies = func(step string) bool { return step == "step 1" }
	if _, _, err := e.Apply(t.Context(), m.want(map[string]string{"a.md": "1", "b.md": "1", "c/d.md": "1"}),
		Approval{}); !e.died(err) {
		t.Fatal(err)
	}
	outside := t.TempDir()
	operationtest.WriteFiles(t, outside, map[string]string{".claude/commands/mine.md": "mine"})
	before := treeOf(t, outside)
	must.Do(t, os.RemoveAll(m.project))
	must.Do(t, os.Symlink(outside, m.project))
	said, err := m.engine().mend(t.Context())
	if err != nil || !strings.Contains(said, m.project) {
		t.Errorf("%q, %v", said, err)
	}
	operationtest.Same(t, "written through the link", before, treeOf(t, outside))
	if j, err := m.state.pending(); j != nil || err != nil {
		t.Errorf("a journal is left: %v", err)
	}
}

func TestThePlanOfARollbackIsShownAndHeld(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
	first := m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	m.deploy(map[string]string{"a.md": "2", "mine.md": "theirs", "c.md": "2"})
	before := m.tree()
	p, err := m.engine().PlanRollback(t.Context(), first.ID, m.reach())
	must.Do(t, err)
	if got := describePlan(
		p); got != "update a.md managed_update, create b.md, delete c.md, update mine.md managed_update" ||
		p.Summary() != (Summary{1, 2, 1}) {
		t.Errorf("%s, %+v", got, p.Summary())
	}
	m.unchanged("planning has written", before)
	if ids, err := m.state.IDs(); len(ids) != 3 || err != nil {
		t.Errorf("planning has made a snapshot: %v, %v", ids, err)
	}
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/c.md": "drift"})
	if _, _, err := m.engine().Rollback(t.Context(), first.ID, m.reach(), p.Digest()); codeOf(err) != PlanChanged {
		t.Errorf("a plan that is no longer true: %v", err)
	}
	if p, err = m.engine().PlanRollback(t.Context(), first.ID, m.reach()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.engine().Rollback(t.Context(), first.ID, m.reach(), p.Digest()); err != nil {
		t.Fatal(err)
	}
	m.has(map[string]string{"a.md": "1", "b.md": "1", "mine.md": "mine"})
}

// prune keeps the newest snapshots, and those that have taken the place of a person's file.
func (m *machine) prune(keep int) (left []string) {
	m.t.Helper()
	p := pruning{state: m.state}
	must.Do(m.t, p.removeSnapshots(keep))
	left, err := m.state.IDs()
	must.Do(m.t, err)
	return left
}

// Deployments between the snapshot that is gone back to and the next that is left have put files in place, of which no
// snapshot says how.
func TestARollbackPastPrunedSnapshotsLeavesNothingOfThem(t *testing.T) {
	t.Parallel()
	byOthers := func(m *machine) {
		d := NewDesired("others", "repo", m.project, Cursor)
		d.AddRoot(Cursor, m.project, m.project, false)
		must.Do(t, d.Add(Cursor, m.project, "theirs.md", TreeFile{Content: Bytes([]byte("x"))}, "m"))
		if _, done, err := m.engine().Apply(t.Context(), d, Approval{}); err != nil || done == nil {
			t.Fatal(err)
		}
	}
	third := map[string]string{"mine.md": "1", "same.md": "same", "a.md": "2", "b.md": "1", "c.md": "1",
		"same too.md": "same"}
	fourth := map[string]string{"mine.md": "1", "same.md": "same", "a.md": "2", "b.md": "2", "d.md": "1"}
	for name, after := range map[string]func(m *machine){
		"then one of the owner's":        func(m *machine) { m.deploy(fourth) },
		"then one of another owner's":    byOthers,
		"then one of each":               func(m *machine) { byOthers(m); m.deploy(fourth) },
		"then one of each, in turn":      func(m *machine) { m.deploy(fourth); byOthers(m) },
		"then a rollback to one of them": nil,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, map[string]string{
				".claude/commands/mine.md": "a person's", ".claude/commands/same.md": "same",
				".claude/commands/same too.md": "same",
			})
			first := m.deploy(map[string]string{"mine.md": "1", "same.md": "same", "a.md": "1"})
			second := m.deploy(map[string]string{"mine.md": "1", "same.md": "same", "a.md": "1", "b.md": "1", "c.md": "0"})
			m.deploy(third)
			if after == nil {
				m.deploy(fourth)
				m.rollback(second.ID)
			} else {
				after(m)
			}
			if left := m.prune(1); slices.Contains(left, second.ID) || !slices.Contains(left, first.ID) {
				t.Fatalf("left are %v", left)
			}
			m.rollback(first.ID)
			m.has(map[string]string{"mine.md": "1", "same.md": "same", "a.md": "1", "same too.md": "same"})
			if got := describePlan(m.plan(map[string]string{"mine.md": "1", "same.md": "same", "a.md": "1"})); got != "" {
				t.Errorf("afterwards: %s", got)
			}
			ids := m.prune(100)
			m.rollback(ids[0])
			m.has(map[string]string{"mine.md": "a person's", "same.md": "same", "same too.md": "same"})
		})
	}
}

// adopted is a machine whose first deployment has taken the place of a person's file, which only its owner may read. A
// second one followed.
func adopted(t *testing.T) (m *machine, mine string) {
	t.Helper()
	m = newMachine(t, map[string]string{".claude/commands/mine.md": "a person's", ".claude/commands/same.md": "same"})
	mine = filepath.Join(m.project, ".claude", "commands", "mine.md")
	must.Do(t, os.Chmod(mine, 0o600))
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
	operationtest.Same(t, "the other projects", before, []map[string]string{a.tree(), b.tree()})
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
			must.Do(t, err)
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
				must.Do(t, os.WriteFile(file, text, 0o600))
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
	must.Do(t, os.Remove(filepath.Join(m.state.dir, "objects", Hash([]byte("a person's")))))
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
