package change

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/system/files"
)

// folderMachine has folders of a person's: empty ones, and one that files are put into. The second folder is one that
// is not there, such as a CODEX_HOME.
func folderMachine(t *testing.T) (m *machine, elsewhere string) {
	m = newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
	for _, dir := range []string{".codex", ".github/prompts", ".claude/commands/empty"} {
		if err := os.MkdirAll(filepath.Join(m.project, filepath.FromSlash(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
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
		if err := d.Add(Codex, m.project, name, TreeFile{Content: Bytes([]byte(name))}, "m"); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Add(Codex, elsewhere, "prompts/p.md", TreeFile{Content: Bytes([]byte("p"))}, "m"); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
