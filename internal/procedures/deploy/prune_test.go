package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// commandText is a configuration of one command.
func commandText(text string) map[string]string {
	return map[string]string{
		"agentpack/repo/" + configName: "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {}}\n" +
			"modules: [{id: fix, type: command, tags: [x], source: {local_path: {path: fix.md}}}]\n",
		"agentpack/repo/fix.md": "---\ndescription: d\n---\n" + text + "\n",
	}
}

func TestWhatIsLeftAfterPruningCanBeRolledBackTo(t *testing.T) {
	b := newBench(t, commandText("0"))
	operationtest.WriteFiles(t, b.dir, map[string]string{"project/.claude/commands/fix.md": "a person's\n"})
	s := NewService(b.settings)
	type moment struct {
		id    string
		files map[string]string
	}
	var moments []moment
	for i := range 12 {
		operationtest.WriteFiles(t, b.dir, commandText(fmt.Sprint(i)))
		if i%3 == 2 {
			operationtest.WriteFiles(t, b.dir,
				map[string]string{"project/.claude/commands/fix.md": fmt.Sprintf("drift %d\n", i)})
		}
		_, done, err := s.Apply(t.Context(), Request{}, change.Approval{Adopt: true}, false)
		if err != nil {
			t.Fatal(err)
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
	if diff := cmp.Diff(before, b.tree("agentpack")); diff != "" {
		t.Errorf("a dry run has removed something:\n%s", diff)
	}
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
		if gone := i > 0 && i < 8; gone {
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
	if text, err := s.engine.State().Kept(change.Hash([]byte("a person's\n"))); err != nil ||
		string(text) != "a person's\n" {
		t.Errorf("the adopted file is lost: %v", err)
	}
}

func TestNothingIsPrunedThatIsNotUnderstood(t *testing.T) {
	b := newBench(t, commandText("0"))
	s := NewService(b.settings)
	for i := range 3 {
		operationtest.WriteFiles(t, b.dir, commandText(fmt.Sprint(i)))
		if _, _, err := s.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := s.engine.State().IDs()
	if err != nil {
		t.Fatal(err)
	}
	name := "agentpack/state/snapshots/" + ids[2] + ".json"
	text := b.tree("agentpack")[name]
	operationtest.WriteFiles(t, b.dir, map[string]string{name: "{"})
	before := b.tree("agentpack")
	if _, err := s.Prune(t.Context(), 1, false); err == nil {
		t.Error("pruned with a snapshot that cannot be read")
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{name: text})
	before[name] = text
	b.settings.NoWriting = "closed"
	if _, err := NewService(b.settings).Prune(t.Context(), 1, false); codeOfFault(err) != notAllowed {
		t.Errorf("read-only: %v", err)
	}
	if diff := cmp.Diff(before, b.tree("agentpack")); diff != "" {
		t.Errorf("%s", diff)
	}
}

func TestCommitsThatNobodyUsesAreRemoved(t *testing.T) {
	b := newBench(t, commandText("0"))
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/cache/git/aa/old/x": "1",
		"agentpack/cache/git/aa/new/x": "1", "agentpack/cache/git/.checkout-1/git/HEAD": "x"})
	old := time.Now().Add(-40 * 24 * time.Hour)
	for _, name := range []string{"aa/old", ".checkout-1"} {
		if err := os.Chtimes(filepath.Join(b.dir, "agentpack", "cache", "git", name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	out, err := NewService(b.settings).Prune(t.Context(), 1, false)
	if files := b.tree("agentpack", "cache"); err != nil || out.Commits != 2 || len(files) != 1 ||
		files["agentpack/cache/git/aa/new/x"] != "1" {
		t.Errorf("%+v, %v, %v", out, err, files)
	}
}
