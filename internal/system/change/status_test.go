package change

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestDriftOfWhatWasDeployed(t *testing.T) {
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1", "b.md": "1", "c.md": "1"})
	root := filepath.Join(m.project, ".claude", "commands")
	operationtest.WriteFiles(t, root, map[string]string{"a.md": "changed", "new/x.md": "x"})
	if err := os.Remove(filepath.Join(root, "b.md")); err != nil {
		t.Fatal(err)
	}
	kinds := func(d *Desired) map[string]DriftKind {
		t.Helper()
		list, _, err := m.engine().Status(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]DriftKind{}
		for _, item := range list {
			rel, _ := filepath.Rel(root, item.Path)
			out[rel] = item.Kind
		}
		return out
	}
	d := m.want(map[string]string{"a.md": "newer", "d.md": "not deployed yet"})
	if diff := cmp.Diff(map[string]DriftKind{"a.md": Modified, "b.md": Missing, "new/x.md": Extra}, kinds(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(ManifestPath(root, ClaudeCode)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]DriftKind{"a.md": Modified, "d.md": Missing}, kinds(d)); diff != "" {
		t.Errorf("without a manifest (-want +got):\n%s", diff)
	}
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
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "old"})
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/a.md": "new"})
	wanted := m.want(map[string]string{"a.md": "new"})
	drift := func() []Drift {
		t.Helper()
		list, _, err := m.engine().Status(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
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
