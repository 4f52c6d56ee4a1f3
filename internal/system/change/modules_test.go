package change

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// wantOf is what one module of another owner should have in Claude Code's commands.
func (m *machine) wantOf(module string, commands map[string]string) *Desired {
	m.t.Helper()
	d := NewDesired("packages", m.project, m.project, ClaudeCode)
	d.Modules, d.KeepChanged = []string{module}, true
	d.AddRoot(ClaudeCode, m.project, m.project, false)
	for name, text := range commands {
		if err := d.Add(ClaudeCode, m.project, name, TreeFile{Content: Bytes([]byte(text))}, module); err != nil {
			m.t.Fatal(err)
		}
	}
	return d
}

func (m *machine) apply(d *Desired) *Plan {
	m.t.Helper()
	p, _, err := m.engine().Apply(m.t.Context(), d, Approval{})
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

func TestADeploymentOfSomeModulesLeavesTheOthers(t *testing.T) {
	m := newMachine(t, nil)
	m.apply(m.wantOf("a", map[string]string{".claude/commands/a1": "1", ".claude/commands/a2": "2"}))
	m.apply(m.wantOf("b", map[string]string{".claude/commands/b1": "1"}))
	m.has(map[string]string{"a1": "1", "a2": "2", "b1": "1"})
	m.apply(m.wantOf("a", map[string]string{".claude/commands/a2": "3"}))
	m.has(map[string]string{"a2": "3", "b1": "1"})
	m.apply(m.wantOf("b", nil))
	m.apply(m.wantOf("a", nil))
	m.has(map[string]string{})
	if last, err := m.state.Last(); err != nil || len(last.Managed) != 0 {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestWhatSomebodyHasChangedStaysIfItShould(t *testing.T) {
	m := newMachine(t, nil)
	m.apply(m.wantOf("a", map[string]string{".claude/commands/a1": "1", ".claude/commands/a2": "2",
		".claude/commands/a3": "3"}))
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/a1": "mine", ".claude/commands/a2": "new"})
	p := m.apply(m.wantOf("a", map[string]string{".claude/commands/a1": "new", ".claude/commands/a2": "new",
		".claude/commands/a3": "3"}))
	m.has(map[string]string{"a1": "mine", "a2": "new", "a3": "3"})
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], filepath.Join("commands", "a1")+" was changed") {
		t.Errorf("warnings %q", p.Warnings)
	}
	p = m.apply(m.wantOf("a", nil))
	m.has(map[string]string{"a1": "mine"})
	if len(p.Warnings) != 1 {
		t.Errorf("warnings %q", p.Warnings)
	}
	if last, err := m.state.Last(); err != nil || len(last.Managed) != 0 {
		t.Errorf("%+v, %v", last, err)
	}
}

// A process may be killed while it tries whether a folder can be written; its file there is removed.
func TestAProbeOfAKilledProcessIsRemoved(t *testing.T) {
	m := newMachine(t, nil)
	m.apply(m.wantOf("a", map[string]string{".claude/commands/a1": "1"}))
	e := m.engine()
	e.dies = func(step string) bool { return step == "stage 0" }
	if _, _, err := e.Apply(t.Context(), m.wantOf("a", nil), Approval{}); !e.died(err) {
		t.Fatal(err)
	}
	j, err := m.state.pending()
	if err != nil || j == nil {
		t.Fatalf("%+v, %v", j, err)
	}
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/" + temporary + j.Snapshot.ID: ""})
	m.apply(m.wantOf("b", map[string]string{".claude/commands/b1": "1"}))
	m.has(map[string]string{"b1": "1"})
}
