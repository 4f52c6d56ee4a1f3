package change

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
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
		if diff := cmp.Diff(before, a.tree()); diff != "" {
			t.Errorf("the other project (-before +after):\n%s", diff)
		}
	})
	t.Run("removed", func(t *testing.T) {
		a, b, first := twoProjects(t)
		if err := os.RemoveAll(a.project); err != nil {
			t.Fatal(err)
		}
		b.rollback(first.ID)
		b.has(map[string]string{"b.md": "1"})
		if Exists(a.project) {
			t.Errorf("the other project was made again: %v", a.tree())
		}
	})
	t.Run("a link", func(t *testing.T) {
		a, b, first := twoProjects(t)
		outside := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".keep": ""})
		if err := os.RemoveAll(a.project); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, a.project); err != nil {
			t.Fatal(err)
		}
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
	if diff := cmp.Diff(before, b.tree()); diff != "" {
		t.Errorf("the snapshot's project (-before +after):\n%s", diff)
	}
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
	before := outsideTree(t, outside)
	if err := os.RemoveAll(m.project); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, m.project); err != nil {
		t.Fatal(err)
	}
	said, err := m.engine().mend(t.Context())
	if err != nil || !strings.Contains(said, m.project) {
		t.Errorf("%q, %v", said, err)
	}
	if diff := cmp.Diff(before, outsideTree(t, outside)); diff != "" {
		t.Errorf("written through the link (-before +after):\n%s", diff)
	}
	if j, err := m.state.pending(); j != nil || err != nil {
		t.Errorf("a journal is left: %v", err)
	}
}

func outsideTree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestThePlanOfARollbackIsShownAndHeld(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
	first := m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	m.deploy(map[string]string{"a.md": "2", "mine.md": "theirs", "c.md": "2"})
	before := m.tree()
	p, err := m.engine().PlanRollback(t.Context(), first.ID, m.reach())
	if err != nil {
		t.Fatal(err)
	}
	if got := describePlan(
		p); got != "update a.md managed_update, create b.md, delete c.md, update mine.md managed_update" ||
		p.Summary() != (Summary{1, 2, 1}) {
		t.Errorf("%s, %+v", got, p.Summary())
	}
	if diff := cmp.Diff(before, m.tree()); diff != "" {
		t.Errorf("planning has written (-before +after):\n%s", diff)
	}
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
	if err := p.run(keep); err != nil {
		m.t.Fatal(err)
	}
	left, err := m.state.IDs()
	if err != nil {
		m.t.Fatal(err)
	}
	return left
}

// Deployments between the snapshot that is gone back to and the next that is left have put files in place, of which no
// snapshot says how.
func TestARollbackPastPrunedSnapshotsLeavesNothingOfThem(t *testing.T) {
	t.Parallel()
	byOthers := func(m *machine) {
		d := NewDesired("others", "repo", m.project, Cursor)
		d.AddRoot(Cursor, m.project, m.project, false)
		if err := d.Add(Cursor, m.project, "theirs.md", TreeFile{Content: Bytes([]byte("x"))}, "m"); err != nil {
			t.Fatal(err)
		}
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
