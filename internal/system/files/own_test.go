//go:build unix

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/files"
)

func TestWhatIsOpenedForWritingAtAPath(t *testing.T) {
	dir, _ := made(t)
	for name, want := range map[string]error{"plain": nil, "inside": nil, "out": nil, "fresh": nil,
		"pipe": files.ErrNotRegular, "to-pipe": files.ErrNotRegular, "device": files.ErrNotRegular} {
		for what, open := range map[string]func(string) (*os.File, error){
			"OpenLock":   files.OpenLock,
			"OpenAppend": func(path string) (*os.File, error) { return files.OpenAppend(path, 0o600) },
		} {
			within(t, func() {
				f, err := open(filepath.Join(dir, name))
				if !errors.Is(err, want) {
					t.Errorf("%s %s: %v, want %v", what, name, err, want)
				}
				if f != nil {
					_ = f.Close()
				}
			})
		}
	}
	isUnchanged(t, dir)
}

func TestModesAreExact(t *testing.T) {
	dir, _ := made(t)
	old := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(old) })
	shared := filepath.Join(dir, "shared")
	if err := errors.Join(files.Mkdir(shared, 0o750), files.Create(filepath.Join(shared, "file"), []byte("x"), 0o640),
		files.Replace(filepath.Join(shared, "other"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o750, "file": 0o640, "other": 0o644} {
		if info, err := files.Stat(filepath.Join(shared, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for _, name := range []string{"plain", "folder", "out", "dangling", "pipe"} {
		if err := files.Create(filepath.Join(dir, name), nil, 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Create %s: %v", name, err)
		}
		if err := files.Mkdir(filepath.Join(dir, name), 0o700); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Mkdir %s: %v", name, err)
		}
	}
	if err := files.Remove(filepath.Join(dir, "nothing")); err != nil {
		t.Error(err)
	}
}

func TestATemporaryFolderIsPrivate(t *testing.T) {
	temp, err := files.MakeTemporary(t.TempDir(), "ours-")
	if err != nil {
		t.Fatal(err)
	}
	path, err := temp.Write("file", []byte("x"))
	if err != nil || filepath.Dir(path) != temp.Path {
		t.Errorf("%s, %v", path, err)
	}
	for name, want := range map[string]fs.FileMode{temp.Path: fs.ModeDir | 0o700, path: 0o600} {
		if info, err := files.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := temp.Write("file", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written twice: %v", err)
	}
	if err := temp.Remove(); err != nil || files.IsFolder(temp.Path) {
		t.Errorf("still there: %v", err)
	}
}

func TestPathsWithoutLinks(t *testing.T) {
	dir, _ := made(t)
	dir = files.Resolve(dir)
	if err := os.Symlink("folder", filepath.Join(dir, "to-folder")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"plain": "plain", "inside": "plain", "to-folder/x/y": "folder/x/y", "to-folder/../plain": "plain",
		"nothing/x": "nothing/x", "dangling": "dangling", "out": "../outside", "loop": "loop",
	} {
		if got := files.Resolve(dir + "/" + path); got != filepath.Join(dir, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestPatternsCountBelowTheFolderOnly(t *testing.T) {
	top := filepath.Join(t.TempDir(), `odd[x]*\`)
	for _, name := range []string{"a/one.git", "b/two", "a.git"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := files.Glob(top, "*/*.git"); !slices.Equal(got, []string{filepath.Join(top, "a", "one.git")}) {
		t.Errorf("%q", got)
	}
	if got := files.Glob(filepath.Join(top, "nothing"), "*"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestAFolderAsAFileSystem(t *testing.T) {
	dir, _ := made(t)
	of := files.FolderFS(dir)
	for name, want := range map[string]error{
		"plain": nil, "out": nil, "pipe": files.ErrNotRegular, "folder": files.ErrNotRegular, "nothing": fs.ErrNotExist,
		"../outside": fs.ErrInvalid, "/etc/passwd": fs.ErrInvalid,
	} {
		within(t, func() {
			if _, err := fs.ReadFile(of, name); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		})
	}
}

func TestFilesWithTwoNames(t *testing.T) {
	dir, _ := made(t)
	if err := os.Link(filepath.Join(dir, "..", "outside"), filepath.Join(dir, "twice")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"plain": false, "twice": true} {
		if info, err := files.Stat(filepath.Join(dir, name)); err != nil || files.HardLinked(info) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
