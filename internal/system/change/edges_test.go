package change

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestNamesThatNotEverySystemCanHave(t *testing.T) {
	t.Parallel()
	root := "/p/" + strings.Repeat("d", 1000)
	deep := strings.Repeat(strings.Repeat("x", 200)+"/", 16)
	for rel, ok := range map[string]bool{
		"a.md": true, "a/b/c.md": true, "console.md": true, "com10.md": true, ".hidden/x": true, "é.md": true,
		"CON": false, "nul.md": false, "a/aux.tar.gz": false, "LPT1": false, "com¹.md": false, "COM1 .md": false,
		"a.": false, "a /x": false, "a:b.md": false, `a\b.md`: false, "a?.md": false, "a\x01.md": false, "a\nb": false,
		"../x": false, "/x": false, "a/../../x": false, "": false, "C:/x": false, "a\x00b": false,
		strings.Repeat("x", 255): true, strings.Repeat("x", 256): false, deep + "x": false, deep[:3000]: true,
		".agentpack.manifest.codex.json": false, ".agentpack-new-1": false,
	} {
		d := NewDesired(Agentpack, "repo", "/p", Codex)
		if err := d.Add(Codex, root, rel, TreeFile{Content: Bytes(nil)}, "m"); (err == nil) != ok || err != nil &&
			codeOf(err) != ConfigInvalid {
			t.Errorf("%.80q: %v", rel, err)
		}
	}
}

func TestPathsThatCannotBothBe(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"a.md", "A.md"}, {"a", "A/b"}, {"x/Y", "X/y"}, {"a/b", "a"}, {"a", "a/b"}} {
		d := NewDesired(Agentpack, "repo", "/p", Codex)
		if err := d.Add(Codex, "/p", pair[0], TreeFile{Content: Bytes([]byte("1"))}, "m1"); err != nil {
			t.Fatal(err)
		}
		if err := d.Add(Codex, "/p", pair[1], TreeFile{Content: Bytes([]byte("1"))},
			"m2"); codeOf(err) != DesiredStateConflict {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

func TestManifestsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"broken": "{", "another version": `{"schema_version":2,"tool":"claude_code"}`,
		"another tool":       `{"schema_version":1,"tool":"codex"}`,
		"entries that leave": `{"schema_version":1,"tool":"claude_code","managed_files":[{"path":"../../../AGENTS.md","sha256":"x"},{"path":"/etc/passwd","sha256":"x"}]}`,
	} {
		m := newMachine(t, map[string]string{"AGENTS.md": "a person's"})
		m.deploy(map[string]string{"a.md": "1"})
		operationtest.WriteFiles(t, m.project,
			map[string]string{".claude/commands/.agentpack.manifest.claude_code.json": text})
		p := m.plan(map[string]string{"a.md": "1"})
		if len(p.Changes) > 0 || len(p.Warnings) == 0 {
			t.Errorf("%s: %s, %v", name, describePlan(p), p.Warnings)
		}
		m.deploy(map[string]string{"a.md": "2"})
		m.has(map[string]string{"a.md": "2"})
		if text, err := os.ReadFile(filepath.Join(m.project, "AGENTS.md")); err != nil || string(text) != "a person's" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestReadOnlyFilesAreReplacedAndStayReadOnly(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	first := m.deploy(map[string]string{"a.md": "1"})
	name := filepath.Join(m.project, ".claude/commands/a.md")
	if err := os.Chmod(name, 0o444); err != nil {
		t.Fatal(err)
	}
	m.deploy(map[string]string{"a.md": "2"})
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	m.rollback(first.ID)
	m.has(map[string]string{"a.md": "1"})
}

func TestAFolderThatCannotBeWrittenChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1"})
	before := m.tree()
	e := m.engine()
	e.fails = func(step string) error {
		if strings.HasPrefix(step, "stage 1") {
			return IOError("x", fmt.Errorf("writing: %w", os.ErrPermission))
		}
		return nil
	}
	_, _, err := e.Apply(t.Context(), m.want(map[string]string{"a.md": "2", "b.md": "2"}), Approval{})
	var coded *Error
	if !errors.As(err, &coded) || coded.Code != PermissionDenied {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, m.tree()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func FuzzPathsStayBelowTheirFolder(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", "/x", "a/../../x", "C:x", "nul"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		d := NewDesired(Agentpack, "repo", "/p", Codex)
		if d.Add(Codex, "/p/root", rel, TreeFile{Content: Bytes(nil)}, "m") != nil {
			return
		}
		for key := range d.Files {
			if key.Path == "/p/root" || !Below("/p/root", key.Path) {
				t.Errorf("%q is written at %q", rel, key.Path)
			}
		}
	})
}

func TestNoOwnerWantsAFileThatGitTakesForItsOwn(t *testing.T) {
	t.Parallel()
	for _, rel := range []string{".git/config", ".GIT/config", "a/GIT~1/config", "a/.g\u200dit", "a\u202eb"} {
		d := NewDesired("x", "repo", t.TempDir(), Codex)
		if err := d.Add(Codex, d.Project, rel, TreeFile{Content: Bytes(nil)}, "m"); codeOf(err) != ConfigInvalid {
			t.Errorf("%+q: %v", rel, err)
		}
	}
}

// Names of targets, as deployments have them.
const (
	Codex      TargetName = "codex"
	ClaudeCode TargetName = "claude_code"
	Cursor     TargetName = "cursor"
	VSCode     TargetName = "vscode"
)

func TargetNames() []TargetName { return []TargetName{ClaudeCode, Codex, Cursor, VSCode} }

func codeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
