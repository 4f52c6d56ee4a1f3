package change

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Nothing that changes one thing below a root follows a link out of it.
func TestOneThingIsChangedBelowItsRootAlone(t *testing.T) {
	tree := Tree{"a.md": TreeFile{Content: Bytes([]byte("new"))}}
	for name, f := range map[string]func(root *os.Root, below string) error{
		"replace": func(root *os.Root, below string) error { return Replace(root, below+"/a.md", []byte("new"), 0o600) },
		"stage":   func(root *os.Root, below string) error { _, err := Stage(root, below, tree); return err },
		"move":    func(root *os.Root, below string) error { return Move(root, "mine.md", below+"/a.md") },
		"remove":  func(root *os.Root, below string) error { return Remove(root, below+"/theirs.md") },
		"lock": func(root *os.Root, below string) error {
			f, err := OpenLock(root, below+"/lock")
			if err == nil {
				_ = f.Close()
			}
			return err
		},
	} {
		dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"root/mine.md": "mine", "root/in/theirs.md": "x", "outside/theirs.md": "theirs"})
		if err := os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "root", "link")); err != nil {
			t.Fatal(err)
		}
		root, err := files.OpenFolderPath(filepath.Join(dir, "root"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		if err := f(root, "link"); err == nil {
			t.Errorf("%s followed a link", name)
		}
		if entries, err := os.ReadDir(filepath.Join(dir, "outside")); err != nil || len(entries) != 1 || !Has(root, "mine.md") {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
		if err := f(root, "in"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsStagedTakesItsPlace(t *testing.T) {
	dir := t.TempDir()
	root, err := files.OpenFolderPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	tree := Tree{"a/b.md": TreeFile{Content: Bytes([]byte("b"))}, "run.sh": TreeFile{Content: Bytes([]byte("r")), Executable: true}}
	if _, err := Stage(root, "waits/new", tree); err != nil {
		t.Fatal(err)
	}
	if err := Move(root, "waits/new", "deep/er/place"); err != nil || Has(root, "waits/new") {
		t.Error(err)
	}
	got, ok, err := ReadTree(root, "deep/er/place", nil)
	if err != nil || !ok || got.Hash() != measured(tree).Hash() {
		t.Errorf("%v, %v, %v", got, ok, err)
	}
	if info, err := root.Stat("deep/er/place/run.sh"); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	failing := Tree{"x": TreeFile{Content: Content{hash: "0", read: func() ([]byte, error) { return nil, errors.New("gone") }}}}
	if at, err := Stage(root, "waits", failing); at != "waits/x" || err == nil {
		t.Errorf("%q, %v", at, err)
	}
	if err := Remove(root, "not there"); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLock(root, "lock"); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("a folder as a lock: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") {
			t.Errorf("%s is left", e.Name())
		}
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
