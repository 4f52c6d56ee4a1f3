package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// The user's folders go back from whatever project they were written.
func TestARollbackOfTheUsersFolders(t *testing.T) {
	b := newBench(t, life())
	operationtest.WriteFiles(t, b.dir, map[string]string{"other/.keep": ""})
	here := NewService(b.settings)
	b.settings.Folder = filepath.Join(b.dir, "other")
	there := NewService(b.settings)
	apply := func(s *Service) *change.Done {
		_, done, err := s.Apply(t.Context(), Request{}, change.Approval{}, false)
		if err != nil || done == nil {
			t.Fatal(err)
		}
		return done
	}
	first := apply(here)
	apply(there)
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/modules/a/AGENTS.md": "# Newer rules\n"})
	apply(there)
	before := b.tree("project")
	if _, _, err := there.Rollback(t.Context(), first.ID, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.tree("user")["user/.codex/AGENTS.md"]; got != "# Rules\n" {
		t.Errorf("the user's file: %q", got)
	}
	if diff := cmp.Diff(before, b.tree("project")); diff != "" {
		t.Errorf("the other project (-before +after):\n%s", diff)
	}
	if got := b.tree("other"); got["other/AGENTS.md"] != "" {
		t.Errorf("what was not there then: %q", got["other/AGENTS.md"])
	}
}

func TestAProjectThatHasBecomeALinkIsNotWritten(t *testing.T) {
	b := newBench(t, life())
	s := NewService(b.settings)
	_, done, err := s.Apply(t.Context(), Request{}, change.Approval{}, false)
	if err != nil {
		t.Fatal(err)
	}
	outside := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".keep": ""})
	if err := os.RemoveAll(s.Project()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, s.Project()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Rollback(t.Context(), done.ID, ""); codeOf(err) != PermissionDenied {
		t.Errorf("rollback: %v", err)
	}
	if _, _, err := s.Apply(t.Context(), Request{}, change.Approval{Adopt: true}, false); codeOf(err) != PermissionDenied {
		t.Errorf("apply: %v", err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("written through the link: %v, %v", entries, err)
	}
}

// In a dry run the tool answers with the plan.
func TestADryRunOfARollbackSaysWhatItWouldChange(t *testing.T) {
	b := newBench(t, life())
	first, _ := b.mustOK(ToolApply, `{"yes":true}`)["snapshot_id"].(string)
	b.mustOK(ToolApply, `{"yes":true,"profile":"more"}`)
	b.authority.DryRun = true
	before := b.tree("project")
	data := b.mustOK(ToolRollback, `{"to":"`+first+`","yes":true}`)
	if changes, _ := data["changes"].([]any); len(changes) != 2 || data["event_snapshot_id"] != nil ||
		data["summary"].(map[string]any)["delete"] != 2.0 {
		t.Errorf("%v", data)
	}
	if diff := cmp.Diff(before, b.tree("project")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// The plan of a rollback is shown line by line.
func TestThePlanOfARollbackHasItsLines(t *testing.T) {
	b := newBench(t, commandText("before"))
	s := NewService(b.settings)
	_, first, err := s.Apply(t.Context(), Request{}, change.Approval{}, false)
	if err != nil {
		t.Fatal(err)
	}
	operationtest.WriteFiles(t, b.dir, commandText("after"))
	if _, _, err := s.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
		t.Fatal(err)
	}
	p, err := s.PlanRollback(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Diff(p)
	if err != nil || len(files) != 1 || !strings.Contains(*files[0].Unified, "-after") ||
		!strings.Contains(*files[0].Unified, "+before") {
		t.Errorf("%+v, %v", files, err)
	}
}
