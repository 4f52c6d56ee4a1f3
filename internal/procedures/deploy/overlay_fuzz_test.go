package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// FuzzOverlay reads overlays of any kind, with files of any name: each is laid over the module, or refused with a code.
func FuzzOverlay(f *testing.F) {
	f.Add(`{"overlay_kind":"dir"}`, "SKILL.md", "new\n")
	f.Add(`{"overlay_kind":"patch"}`, ".agentpack/patches/SKILL.md.patch",
		"--- a/SKILL.md\n+++ b/SKILL.md\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add(`{"overlay_kind":"patch"}`, ".agentpack/patches/../../../x.patch", "--- a/x\n+++ b/x\n")
	f.Add(`{`, "deep/er.md", "")
	f.Add(`{"overlay_kind":1}`, ".agentpack/patches/.patch", "\x00")
	for _, text := range append(patchSeeds(), "---\r\nname: x\r\n---\r\n", "\ufeff# x", "no newline",
		"\t- tab\n  - inner\n", "手順 🙂\n", strings.Repeat("long ", 3000)) {
		f.Add(`{"overlay_kind":"patch"}`, ".agentpack/patches/SKILL.md.patch", text)
		f.Add(`{"overlay_kind":"dir"}`, "Übergabe/a b.md", text)
	}
	m := Module{ID: "m", Type: Skill}
	f.Fuzz(func(t *testing.T, kind, name, text string) {
		clean := filepath.ToSlash(filepath.Clean(name))
		if change.Leaves(name) != "" || len(clean) > 200 || strings.HasSuffix(name, "/") || clean == "." ||
			clean == ".agentpack" || clean == ".agentpack/overlay.json" ||
			strings.HasPrefix(clean, ".agentpack/overlay.json/") {
			return
		}
		dir := operationtest.WriteFiles(t, t.TempDir(),
			map[string]string{"overlays/" + fsKey("m") + "/.agentpack/overlay.json": kind})
		file := filepath.Join(dir, "overlays", fsKey("m"), filepath.FromSlash(clean))
		if os.MkdirAll(filepath.Dir(file), 0o755) != nil || os.WriteFile(file, []byte(text), 0o600) != nil {
			return // no name of a file
		}
		root, err := files.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		base := change.Tree{"SKILL.md": {Content: change.Bytes([]byte("a\n"))}}
		got, err := overlaid(t.Context(), root, m, base, levelsIn(root, "box", "p"), fakePatch)
		if err != nil {
			if codeOf(err) == "" {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		for _, p := range top(got).Paths() {
			if change.Leaves(p) != "" || strings.HasPrefix(p, ".agentpack") || strings.HasPrefix(p, ".git/") {
				t.Errorf("the module has %q", p)
			}
		}
		if string(bytesOf(base["SKILL.md"].Content)) != "a\n" {
			t.Error("the module itself was changed")
		}
	})
}

// FuzzPatchByGit hands git what the check lets through: whatever a patch says, it changes the one file that it is for.
func FuzzPatchByGit(f *testing.F) {
	program, err := exec.LookPath("git")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -1 +1,2 @@\n a\n+b\n\\ No newline at end of file\n")
	for _, seed := range patchSeeds() {
		f.Add(strings.ReplaceAll(seed, "SKILL.md", "m/SKILL.md"))
	}
	f.Add("diff --git a/x b/x\nnew file mode 120000\n--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -0,0 +1 @@\n+/etc/passwd\n")
	f.Add(
		"--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\nrename from m/SKILL.md\nrename to ../y\n")
	f.Fuzz(func(t *testing.T, text string) {
		if (patchFile{rel: "m/SKILL.md", text: text}).bad() != "" {
			return
		}
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		operationtest.WriteFiles(t, temp, map[string]string{"y": "outside\n", "home/.keep": ""})
		g := newGit(program, filepath.Join(temp, "home"), filepath.Join(temp, "home"), []string{"PATH=" + os.Getenv("PATH")})
		after, failure, err := g.Patch(t.Context(), "m/SKILL.md", "a\n", text)
		if err != nil && after != "" || failure != "" && after != "" {
			t.Errorf("%q, %q, %v", after, failure, err)
		}
		entries, err := os.ReadDir(temp)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		outside, readErr := os.ReadFile(filepath.Join(temp, "y"))
		if diff := cmp.Diff([]string{"home", "y"}, names); diff != "" || string(outside) != "outside\n" || err != nil ||
			readErr != nil {
			t.Errorf("the patch %q reached beyond its file: %s, %q", text, diff, outside)
		}
	})
}
