//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
)

// TestNothingButAFolderIsOpenedAsOne looks at what could lie where a folder is expected.
func TestNothingButAFolderIsOpenedAsOne(t *testing.T) {
	dir, _ := made(t)
	root, err := files.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.Symlink("folder", filepath.Join(dir, "to-folder")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder", "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "to-pipe", "plain", "socket", "device", "nothing", "dangling", "loop", ""} {
		path := name
		if name != "" {
			path = filepath.Join(dir, name)
		}
		for what, look := range map[string]func() error{
			"a folder": func() error { return closed(root.Folder(name)) },
			"a path":   func() error { return closed(files.OpenDir(path)) },
			"entries":  func() error { _, _, err := root.Entries(name, 10); return err },
		} {
			within(t, func() {
				if look() == nil {
					t.Errorf("%q was opened as %s", name, what)
				}
			})
		}
	}
	if err := closed(root.Folder("..")); err == nil {
		t.Error("the folder above the root was opened")
	}
	for _, name := range []string{"folder", "folder/", "to-folder"} {
		entries, _, err := root.Entries(name, 10)
		if err != nil || len(entries) != 1 || entries[0].Name() != "inner" {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
		if err := closed(files.OpenDir(filepath.Join(dir, name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func closed(root *files.Dir, err error) error {
	if err != nil {
		return err
	}
	return root.Close()
}
