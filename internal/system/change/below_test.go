package change

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
)

func TestWhatIsStagedTakesItsPlace(t *testing.T) {
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
