package fileset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestDriftOfWhatWasDeployed(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1", "b.md": "1", "c.md": "1"})
	root := filepath.Join(m.project, ".claude", "commands")
	operationtest.WriteFiles(t, root, map[string]string{"a.md": "changed", "new/x.md": "x"})
	must.Do(t, os.Remove(filepath.Join(root, "b.md")))
	kinds := func(d *Desired) map[string]DriftKind {
		t.Helper()
		list, _, err := m.engine().Status(t.Context(), d)
		must.Do(t, err)
		out := map[string]DriftKind{}
		for _, item := range list {
			rel, _ := filepath.Rel(root, item.Path)
			out[rel] = item.Kind
		}
		return out
	}
	d := m.want(map[string]string{"a.md": "newer", "d.md": "not deployed yet"})
	operationtest.Same(t, "drift", map[string]DriftKind{"a.md": Modified, "b.md": Missing, "new/x.md": Extra}, kinds(d))
	must.Do(t, os.Remove(ManifestPath(root, ClaudeCode)))
	operationtest.Same(t, "without a manifest", map[string]DriftKind{"a.md": Modified, "d.md": Missing}, kinds(d))
	if h := health(newDisk(m.project), RootDir{ClaudeCode, root, m.project, true}); !h.Exists || !h.Writable ||
		len(h.Issues) > 0 {
		t.Errorf("%+v", h)
	}
	if h := health(newDisk(m.project), RootDir{ClaudeCode, filepath.Join(root, "gone"), m.project, true}); h.Exists ||
		h.Issues[0] != "missing" {
		t.Errorf("%+v", h)
	}
	if h := health(newDisk(m.project), RootDir{ClaudeCode, filepath.Join(root, "a.md"), m.project, true}); !h.Exists ||
		h.Issues[0] != "not_a_directory" {
		t.Errorf("%+v", h)
	}
}

func TestDriftThatBecameWhatIsWantedIsNoneAfterTheNextDeployment(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "old"})
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/a.md": "new"})
	wanted := m.want(map[string]string{"a.md": "new"})
	drift := func() []Drift {
		t.Helper()
		list, _, err := m.engine().Status(t.Context(), wanted)
		must.Do(t, err)
		return list
	}
	if list := drift(); len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if p, done, err := m.engine().Apply(t.Context(), wanted, Approval{}); err != nil || len(p.Changes) != 0 ||
		done == nil || len(done.Steps) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if list := drift(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if _, done, err := m.engine().Apply(t.Context(), wanted, Approval{}); done != nil || err != nil {
		t.Errorf("a snapshot of nothing: %+v, %v", done, err)
	}
}

// wantOf returns the desired state of one module of another owner in Claude Code's commands.
func (m *machine) wantOf(module string, commands map[string]string) *Desired {
	m.t.Helper()
	d := NewDesired("packages", m.project, m.project, ClaudeCode)
	d.Modules, d.KeepChanged = []string{module}, true
	d.AddRoot(ClaudeCode, m.project, m.project, false)
	for name, text := range commands {
		must.Do(m.t, d.Add(ClaudeCode, m.project, name, TreeFile{Content: Bytes([]byte(text))}, module))
	}
	return d
}

func (m *machine) apply(d *Desired) *Plan {
	m.t.Helper()
	p, _, err := m.engine().Apply(m.t.Context(), d, Approval{})
	must.Do(m.t, err)
	return p
}

func TestADeploymentOfSomeModulesLeavesTheOthers(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
