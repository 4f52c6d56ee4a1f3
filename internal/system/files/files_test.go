//go:build unix

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// within fails if f takes longer than a call that waits for nothing could, on any machine.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

func made(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "root")
	must.Do(t, os.Mkdir(dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(top, "outside"), []byte("secret"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("0123456789"), 0o600))
	must.Do(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must.Do(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for link, to := range map[string]string{
		"inside": "plain", "out": "../outside", "absolute": filepath.Join(top, "outside"), "to-pipe": "pipe",
		"device": "/dev/zero", "dangling": "nothing", "loop": "loop",
	} {
		must.Do(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must.Do(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	t.Chdir(dir) // the path of a socket is short
	must.Do(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "socket"}))
	root, err = os.OpenRoot(dir)
	must.Do(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

// opened opens the folder of made for reading.
func opened(t *testing.T) (dir string, d *files.Dir) {
	t.Helper()
	dir, _ = made(t)
	d, err := files.OpenDir(dir)
	must.Do(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return dir, d
}

func TestWhatIsReadBelowAFolder(t *testing.T) {
	_, d := opened(t)
	for _, c := range []struct {
		name  string
		limit int64
		want  string
		is    error
		says  string
	}{
		{name: "plain", limit: 10, want: "0123456789"},
		{name: "inside", limit: 10, want: "0123456789"},
		{name: "plain", limit: 9, is: files.ErrTooLarge, says: "9 bytes"},
		{name: "folder", limit: 10, is: files.ErrNotRegular},
		{name: "pipe", limit: 10, is: files.ErrNotRegular},
		{name: "to-pipe", limit: 10, is: files.ErrNotRegular},
		{name: "socket", limit: 10, is: files.ErrNotRegular},
		{name: "nothing", limit: 10, is: fs.ErrNotExist},
		{name: "dangling", limit: 10, is: fs.ErrNotExist},
		{name: "out", limit: 10, says: "escapes"},
		{name: "absolute", limit: 10, says: "escapes"},
		{name: "device", limit: 10, says: "escapes"},
		{name: "../outside", limit: 10, says: "escapes"},
		{name: "loop", limit: 10, says: "too many"},
		{name: "/etc/passwd", limit: 10, says: "escapes"},
		{name: "", limit: 10, says: "empty path"},
	} {
		within(t, func() {
			text, info, err := d.Read(c.name, c.limit)
			switch {
			case c.is == nil && c.says == "":
				if err != nil || string(text) != c.want || info.Size() != int64(len(c.want)) {
					t.Errorf("%s: %q, %v", c.name, text, err)
				}
			case err == nil || text != nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says):
				t.Errorf("%s: %q, error %v, want %v %q", c.name, text, err, c.is, c.says)
			}
		})
	}
}

func TestWhatIsReadAtAPath(t *testing.T) {
	dir, _ := made(t)
	for name, want := range map[string]error{
		"plain": nil, "out": nil, "absolute": nil, "folder": files.ErrNotRegular, "pipe": files.ErrNotRegular,
		"to-pipe": files.ErrNotRegular,
		"device":  files.ErrNotRegular, "nothing": fs.ErrNotExist,
	} {
		within(t, func() {
			if _, _, err := files.ReadPath(filepath.Join(dir, name), 100); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		})
	}
}

func TestWhatIsReadAtAPathThatIsNoLink(t *testing.T) {
	dir, _ := made(t)
	must.Do(t, os.Symlink("folder", filepath.Join(dir, "to-folder")))
	for name, want := range map[string]error{
		"plain": nil, "to-folder/../plain": nil, "inside": files.ErrNotRegular, "out": files.ErrNotRegular,
		"absolute": files.ErrNotRegular, "folder": files.ErrNotRegular,
		"pipe": files.ErrNotRegular, "to-pipe": files.ErrNotRegular, "device": files.ErrNotRegular,
		"dangling": files.ErrNotRegular, "nothing": fs.ErrNotExist,
	} {
		within(t, func() {
			if _, _, err := files.ReadUnlinked(dir+"/"+name, 100); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		})
	}
	for _, name := range []string{"to-folder", "to-folder/", "plain", "pipe", "to-pipe", "device", "socket", "nothing"} {
		within(t, func() {
			f, err := files.OpenFolderUnlinked(dir + "/" + name)
			if err == nil && name != "to-folder/" { // which names the folder itself
				t.Errorf("%s was opened", name)
			}
			if f != nil {
				_ = f.Close()
			}
		})
	}
	f, err := files.OpenFolderUnlinked(filepath.Join(dir, "folder"))
	must.Do(t, err)
	_ = f.Close()
}

func TestFoldersThatAreListed(t *testing.T) {
	dir, d := opened(t)
	for _, name := range []string{"c", "a", "b"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, "folder", name), 0o700))
	}
	must.Do(t, os.Symlink("folder", filepath.Join(dir, "to-folder")))
	for _, c := range []struct {
		name     string
		limit    int
		want     int
		complete bool
		is       error
		says     string
	}{
		{name: "folder", limit: 3, want: 3, complete: true},
		{name: "to-folder", limit: 9, want: 3, complete: true},
		{name: "folder", limit: 2, want: 2},
		{name: "folder/a", limit: 2, complete: true},
		{name: "plain", limit: 9, is: files.ErrNotFolder},
		{name: "pipe", limit: 9, is: files.ErrNotFolder},
		{name: "to-pipe", limit: 9, is: files.ErrNotFolder},
		{name: "nothing", limit: 9, is: fs.ErrNotExist},
		{name: "..", limit: 9, says: "escapes"},
	} {
		within(t, func() {
			entries, complete, err := d.Entries(c.name, c.limit)
			wrong := c.is != nil && !errors.Is(err, c.is) || c.says != "" &&
				(err == nil || !strings.Contains(err.Error(), c.says))
			if wrong || c.is == nil && c.says == "" && err != nil || len(entries) != c.want || complete != c.complete {
				t.Errorf("%s, %d: %d entries, %v, %v", c.name, c.limit, len(entries), complete, err)
			}
		})
	}
}

// An absolute link is followed as far as it ends in the folder, by every way to read.
func TestAnAbsoluteLinkIsJudgedByWhereItEnds(t *testing.T) {
	t.Parallel()
	top, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{top, outside} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, "real"), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "real", "a"), []byte("text"), 0o600))
	}
	for name, target := range map[string]string{"in": filepath.Join(top, "real"), "out": filepath.Join(outside, "real")} {
		must.Do(t, os.Symlink(target, filepath.Join(top, name)))
	}
	dir, err := files.OpenDir(top)
	must.Do(t, err)
	defer func() { _ = dir.Close() }()
	for way, read := range map[string]func(folder string) error{
		"read":  func(folder string) error { _, _, err := dir.Read(folder+"/a", 10); return err },
		"stat":  func(folder string) error { _, err := dir.Stat(folder); return err },
		"lists": func(folder string) error { _, _, err := dir.Entries(folder, 10); return err },
		"folder": func(folder string) error {
			inner, err := dir.Folder(folder)
			if err != nil {
				return err
			}
			_, _, err = inner.Read("a", 10)
			return errors.Join(err, inner.Close())
		},
	} {
		if err := read("in"); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if err := read("out"); err == nil || !files.Escapes(err) {
			t.Errorf("%s out of the folder: %v", way, err)
		}
	}
}

// TestNothingButAFolderIsOpenedAsOne looks at what could lie where a folder is expected.
func TestNothingButAFolderIsOpenedAsOne(t *testing.T) {
	dir, _ := made(t)
	root, err := files.OpenDir(dir)
	must.Do(t, err)
	defer root.Close()
	must.Do(t, os.Symlink("folder", filepath.Join(dir, "to-folder")))
	must.Do(t, os.Mkdir(filepath.Join(dir, "folder", "inner"), 0o700))
	for name, want := range map[string]error{"pipe": files.ErrNotFolder, "to-pipe": files.ErrNotFolder,
		"plain": files.ErrNotFolder, "nothing": fs.ErrNotExist, "out": nil, "socket": nil, "device": nil, "dangling": nil,
		"loop": nil, "": nil} {
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
				if err := look(); err == nil || what != "a folder" && want != nil && !errors.Is(err, want) {
					t.Errorf("%q as %s: %v, want %v", name, what, err, want)
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
	must.Do(t, files.Mkdir(shared, 0o750), files.Create(filepath.Join(shared, "file"), []byte("x"), 0o640),
		files.Replace(filepath.Join(shared, "other"), nil, 0o644))
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
	must.Do(t, err)
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
	must.Do(t, os.Symlink("folder", filepath.Join(dir, "to-folder")))
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
		must.Do(t, os.MkdirAll(filepath.Join(top, name), 0o700))
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
	must.Do(t, os.Link(filepath.Join(dir, "..", "outside"), filepath.Join(dir, "twice")))
	for name, want := range map[string]bool{"plain": false, "twice": true} {
		if info, err := files.Stat(filepath.Join(dir, name)); err != nil || files.HardLinked(info) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
