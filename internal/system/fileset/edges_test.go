package fileset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
		must.Do(t, d.Add(Codex, "/p", pair[0], TreeFile{Content: Bytes([]byte("1"))}, "m1"))
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
	must.Do(t, os.Chmod(name, 0o444))
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
	m.unchanged("what failed has written", before)
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

// folderMachine has folders of a person's: empty ones, and one that files are put into. The second folder is one that
// is not there, such as a CODEX_HOME.
func folderMachine(t *testing.T) (m *machine, elsewhere string) {
	m = newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
	for _, dir := range []string{".codex", ".github/prompts", ".claude/commands/empty"} {
		must.Do(t, os.MkdirAll(filepath.Join(m.project, filepath.FromSlash(dir)), 0o755))
	}
	return m, filepath.Join(filepath.Dir(m.project), "other", "codex")
}

// installed are files in folders that are there, and in some that are not.
func installed(t *testing.T, m *machine, owner Owner, elsewhere string) *Desired {
	d := NewDesired(owner, m.project, m.project, TargetNames()...)
	d.AddRoot(Codex, m.project, m.project, false)
	d.AddRoot(Codex, elsewhere, elsewhere, false)
	for _, name := range []string{".codex/skills/s/SKILL.md", ".codex/AGENTS.md", ".github/prompts/p.md",
		".claude/commands/empty/in/it.md", "new/deep/x.md", "new/y.md"} {
		must.Do(t, d.Add(Codex, m.project, name, TreeFile{Content: Bytes([]byte(name))}, "m"))
	}
	must.Do(t, d.Add(Codex, elsewhere, "prompts/p.md", TreeFile{Content: Bytes([]byte("p"))}, "m"))
	return d
}

// TestOnlyFoldersThatWereMadeAreRemoved puts files in place and removes them again, killed at each step of both: the
// tree is the same as before, with its empty folders.
func TestOnlyFoldersThatWereMadeAreRemoved(t *testing.T) {
	t.Parallel()
	for _, owner := range []Owner{Agentpack, "packages"} {
		for _, killed := range []string{"installing", "removing", "nowhere"} {
			for step := 0; ; step++ {
				m, elsewhere := folderMachine(t)
				before := m.tree()
				run := func(d *Desired, dies bool) (ended bool) {
					e, n := m.engine(), 0
					if dies {
						e.dies = func(string) bool { n++; return n > step }
					}
					_, _, err := e.Apply(t.Context(), d, Approval{})
					if err != nil && !e.died(err) {
						t.Fatalf("%s, killed %s, step %d: %v", owner, killed, step, err)
					}
					return err == nil
				}
				none := func() *Desired { return NewDesired(owner, m.project, m.project, TargetNames()...) }
				through := run(installed(t, m, owner, elsewhere), killed == "installing")
				if killed != "installing" {
					if _, err := os.Stat(filepath.Join(elsewhere, "prompts", "p.md")); err != nil {
						t.Fatal(err)
					}
					through = run(none(), killed == "removing")
				}
				if _, err := m.engine().mend(t.Context()); err != nil {
					t.Fatal(err)
				}
				run(none(), false)
				if diff := cmp.Diff(before, m.tree()); diff != "" {
					t.Fatalf("%s, killed %s, step %d (-before +after):\n%s", owner, killed, step, diff)
				}
				if _, err := os.Stat(filepath.Dir(elsewhere)); err == nil {
					t.Fatalf("%s, killed %s, step %d: %s is left", owner, killed, step, filepath.Dir(elsewhere))
				}
				if through {
					if killed != "nowhere" && step < 10 {
						t.Errorf("only %d steps were seen", step)
					}
					break
				}
			}
		}
	}
}

// TestARollbackLeavesThePersonsFolders rolls back to before files came, and what fails is taken back with its folders.
func TestARollbackLeavesThePersonsFolders(t *testing.T) {
	t.Parallel()
	m, elsewhere := folderMachine(t)
	first := m.deploy(map[string]string{"a.md": "1"})
	before := m.tree()
	m.deploy(map[string]string{"a.md": "1", "empty/b.md": "2", "new/c.md": "3"})
	m.rollback(first.ID)
	delete(before, filepath.Join(m.project, ".claude/commands/.agentpack.manifest.claude_code.json"))
	after := m.tree()
	delete(after, filepath.Join(m.project, ".claude/commands/.agentpack.manifest.claude_code.json"))
	operationtest.Same(t, "the tree", before, after)
	for fails := range 30 {
		before, e, n := m.tree(), m.engine(), 0
		e.fails = func(step string) error {
			if n++; n == fails+1 && step != "end" { // by then it is done
				return os.ErrInvalid
			}
			return nil
		}
		if _, _, err := e.Apply(t.Context(), installed(t, m, "packages", elsewhere), Approval{}); err == nil {
			if fails < 10 {
				t.Errorf("only %d steps were seen", fails)
			}
			return
		}
		if diff := cmp.Diff(before, m.tree()); diff != "" {
			t.Fatalf("step %d (-before +after):\n%s", fails, diff)
		}
		if _, err := os.Stat(filepath.Dir(elsewhere)); err == nil {
			t.Fatalf("step %d: %s is left", fails, filepath.Dir(elsewhere))
		}
	}
	t.Error("more than 30 steps")
}

// TestAPersonsFolderDoesNotMakeRoom: a file is not put in place of a folder that was not deployed, even an empty one.
func TestAPersonsFolderDoesNotMakeRoom(t *testing.T) {
	t.Parallel()
	m, _ := folderMachine(t)
	m.deploy(map[string]string{"a.md": "1", "ours/b.md": "1"})
	before := m.tree()
	_, _, err := m.engine().Apply(t.Context(), m.want(map[string]string{"empty": "2"}), Approval{Adopt: true})
	if diff := cmp.Diff(before, m.tree()); diff != "" || codeOf(err) == "" {
		t.Errorf("%v (-before +after):\n%s", err, diff)
	}
	m.deploy(map[string]string{"a.md": "1", "ours": "2"})
	m.has(map[string]string{"a.md": "1", "mine.md": "mine", "ours": "2"})
}

func TestWhatIsStagedTakesItsPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := files.OpenWriting(dir)
	must.Do(t, err)
	defer func() { _ = root.Close() }()
	tree := Tree{"a/b.md": TreeFile{Content: Bytes([]byte("b"))},
		"run.sh": TreeFile{Content: Bytes([]byte("r")), Executable: true}}
	if _, err := Stage(root, "waits/new", tree); err != nil {
		t.Fatal(err)
	}
	if err := root.Move("waits/new", "deep/er/place"); err != nil || root.Has("waits/new") {
		t.Error(err)
	}
	got, ok, err := ReadTree(&root.Dir, "deep/er/place", nil)
	if err != nil || !ok || got.Hash() != measured(tree).Hash() {
		t.Errorf("%v, %v, %v", got, ok, err)
	}
	if info, err := root.Stat("deep/er/place/run.sh"); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	failing := Tree{"x": TreeFile{Content: Content{hash: "0",
		read: func() ([]byte, error) { return nil, errors.New("gone") }}}}
	if at, err := Stage(root, "waits", failing); at != "waits/x" || err == nil {
		t.Errorf("%q, %v", at, err)
	}
	if at, err := Stage(root, "waits", tree); err != nil {
		t.Errorf("%s, %v", at, err)
	}
	if at, err := Stage(root, "waits", tree); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another process's stage is written over: %s, %v", at, err)
	}
}

// measured has the sizes that a tree has after it was read.
func measured(t Tree) Tree {
	out := Tree{}
	for name, f := range t {
		content, _ := f.Content.Bytes()
		f.size = int64(len(content))
		out[name] = f
	}
	return out
}
