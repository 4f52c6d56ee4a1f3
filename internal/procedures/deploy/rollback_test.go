package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The user's folders go back from whatever project they were written.
func TestARollbackOfTheUsersFolders(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	operationtest.WriteFiles(t, b.dir, map[string]string{"other/.keep": ""})
	here := NewService(b.settings)
	b.settings.Folder = filepath.Join(b.dir, "other")
	there := NewService(b.settings)
	first := apply(t, here, fileset.Approval{})
	apply(t, there, fileset.Approval{})
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/modules/a/AGENTS.md": "# Newer rules\n"})
	apply(t, there, fileset.Approval{})
	before := b.tree("project")
	if _, _, err := there.Rollback(t.Context(), first.ID, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.tree("user")["user/.codex/AGENTS.md"]; got != "# Rules\n" {
		t.Errorf("the user's file: %q", got)
	}
	b.unchanged("the other project", before, "project")
	if got := b.tree("other"); got["other/AGENTS.md"] != "" {
		t.Errorf("what was not there then: %q", got["other/AGENTS.md"])
	}
}

func TestAProjectThatHasBecomeALinkIsNotWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	s := NewService(b.settings)
	done := apply(t, s, fileset.Approval{})
	outside := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".keep": ""})
	must.Do(t, os.RemoveAll(s.Project()))
	must.Do(t, os.Symlink(outside, s.Project()))
	if _, _, err := s.Rollback(t.Context(), done.ID, ""); codeOf(err) != PermissionDenied {
		t.Errorf("rollback: %v", err)
	}
	if _, _, err := s.Apply(t.Context(), Request{}, fileset.Approval{Adopt: true},
		false); codeOf(err) != PermissionDenied {
		t.Errorf("apply: %v", err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("written through the link: %v, %v", entries, err)
	}
}

// In a dry run the tool answers with the plan.
func TestADryRunOfARollbackSaysWhatItWouldChange(t *testing.T) {
	t.Parallel()
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
	b.unchanged("a dry run has written", before, "project")
}

// The plan of a rollback is shown line by line.
func TestThePlanOfARollbackHasItsLines(t *testing.T) {
	t.Parallel()
	b := newBench(t, commandText("before"))
	s := NewService(b.settings)
	first := apply(t, s, fileset.Approval{})
	operationtest.WriteFiles(t, b.dir, commandText("after"))
	apply(t, s, fileset.Approval{})
	p, err := s.PlanRollback(t.Context(), first.ID)
	must.Do(t, err)
	files, _, err := Diff(p)
	if err != nil || len(files) != 1 || !strings.Contains(*files[0].Unified, "-after") ||
		!strings.Contains(*files[0].Unified, "+before") {
		t.Errorf("%+v, %v", files, err)
	}
}

// commandText is a configuration of one command.
func commandText(text string) map[string]string {
	return map[string]string{
		"agentpack/repo/" + configName: "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {}}\n" +
			"modules: [{id: fix, type: command, tags: [x], source: {local_path: {path: fix.md}}}]\n",
		"agentpack/repo/fix.md": "---\ndescription: d\n---\n" + text + "\n",
	}
}

func TestWhatIsLeftAfterPruningCanBeRolledBackTo(t *testing.T) {
	t.Parallel()
	b := newBench(t, commandText("0"))
	operationtest.WriteFiles(t, b.dir, map[string]string{"project/.claude/commands/fix.md": "a person's\n"})
	s := NewService(b.settings)
	type moment struct {
		id    string
		files map[string]string
	}
	moments := []moment{{"", map[string]string{"project/.keep": "", "project/.claude/commands/fix.md": "a person's\n"}}}
	for i := range 12 {
		operationtest.WriteFiles(t, b.dir, commandText(fmt.Sprint(i)))
		if i%3 == 2 {
			operationtest.WriteFiles(t, b.dir,
				map[string]string{"project/.claude/commands/fix.md": fmt.Sprintf("drift %d\n", i)})
		}
		done := apply(t, s, fileset.Approval{Adopt: true})
		if i == 0 {
			moments[0].id = done.Previous
		}
		files := b.tree("project")
		delete(files, "project/.claude/commands/.agentpack.manifest.claude_code.json")
		moments = append(moments, moment{done.ID, files})
	}
	before := b.tree("agentpack")
	counted, err := s.Prune(t.Context(), 4, true)
	if err != nil || counted.Snapshots != 7 || counted.Kept != 6 || counted.Objects == 0 || counted.Bytes == 0 {
		t.Errorf("%+v, %v", counted, err)
	}
	b.unchanged("a dry run has removed something", before, "agentpack")
	pruned, err := s.Prune(t.Context(), 4, false)
	if counted.DryRun = false; err != nil || pruned != counted {
		t.Errorf("%+v, %v", pruned, err)
	}
	again, err := s.Prune(t.Context(), 4, false)
	if err != nil || again.Snapshots != 0 || again.Objects != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	for i, m := range moments {
		_, _, err := s.Rollback(t.Context(), m.id, "")
		if gone := i > 1 && i < 9; gone {
			if codeOf(err) != SnapshotNotFound {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		got := b.tree("project")
		delete(got, "project/.claude/commands/.agentpack.manifest.claude_code.json")
		if diff := cmp.Diff(m.files, got); diff != "" || err != nil {
			t.Errorf("%d: %v (-want +got):\n%s", i, err, diff)
		}
	}
	if text, err := s.engine.State().Kept(fileset.Hash([]byte("a person's\n"))); err != nil ||
		string(text) != "a person's\n" {
		t.Errorf("the adopted file is lost: %v", err)
	}
}

func TestNothingIsPrunedThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	b := newBench(t, commandText("0"))
	s := NewService(b.settings)
	for i := range 3 {
		operationtest.WriteFiles(t, b.dir, commandText(fmt.Sprint(i)))
		apply(t, s, fileset.Approval{})
	}
	ids, err := s.engine.State().IDs()
	must.Do(t, err)
	name := "agentpack/state/snapshots/" + ids[2] + ".json"
	text := b.tree("agentpack")[name]
	operationtest.WriteFiles(t, b.dir, map[string]string{name: "{"})
	before := b.tree("agentpack")
	if _, err := s.Prune(t.Context(), 1, false); err == nil {
		t.Error("pruned with a snapshot that cannot be read")
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{name: text})
	before[name] = text
	b.settings.NoWriting = func() string { return "closed" }
	if _, err := NewService(b.settings).Prune(t.Context(), 1, false); codeOfFault(err) != notAllowed {
		t.Errorf("read-only: %v", err)
	}
	b.unchanged("something was pruned", before, "agentpack")
}

func TestCommitsThatNobodyUsesAreRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, commandText("0"))
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/cache/git/aa/old/x": "1",
		"agentpack/cache/git/aa/new/x": "1", "agentpack/cache/git/.checkout-1/git/HEAD": "x"})
	old := time.Now().Add(-40 * 24 * time.Hour)
	for _, name := range []string{"aa/old", ".checkout-1"} {
		must.Do(t, os.Chtimes(filepath.Join(b.dir, "agentpack", "cache", "git", name), old, old))
	}
	out, err := NewService(b.settings).Prune(t.Context(), 1, false)
	if files := b.tree("agentpack", "cache"); err != nil || out.Commits != 2 || len(files) != 1 ||
		files["agentpack/cache/git/aa/new/x"] != "1" {
		t.Errorf("%+v, %v, %v", out, err, files)
	}
}
