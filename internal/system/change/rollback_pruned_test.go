package change

import (
	"slices"
	"testing"
)

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
