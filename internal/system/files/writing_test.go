//go:build unix

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// written opens the folder of made for writing.
func written(t *testing.T) (dir string, w *files.Writing) {
	t.Helper()
	dir, _ = made(t)
	w, err := files.OpenWriting(dir)
	must.Do(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return dir, w
}

func isUnchanged(t *testing.T, dir string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(dir, "..", "outside")); err != nil || string(text) != "secret" {
		t.Errorf("the file outside holds %q, %v", text, err)
	}
}

func TestAFolderBelowKeepsToItself(t *testing.T) {
	dir, d := opened(t)
	if info, err := d.Lstat("out"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("Lstat of a link: %v", err)
	}
	if _, err := d.Stat("out"); err == nil {
		t.Error("Stat followed a link that leads out")
	}
	inner, err := d.Folder("folder")
	must.Do(t, err)
	defer inner.Close()
	if _, err := inner.Stat("../plain"); err == nil {
		t.Error("a folder let what is above it be seen")
	}
	must.Do(t, os.Symlink("../plain", filepath.Join(dir, "folder", "above")))
	if _, _, err := inner.Read("above", 10); err == nil {
		t.Error("a folder let what is above it be read by a link")
	}
}

func TestReplaceKeepsToItsFolder(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused bool
	}{
		{"plain", false}, {"nothing", false}, {"folder/inner", false},
		// the links themselves are replaced
		{"inside", false}, {"out", false}, {"absolute", false}, {"dangling", false}, {"device", false},
		{"pipe", false},
		{"folder", true}, {"../outside", true}, {"nothing/inner", true}, {"/tmp/outside", true}, {"", true}, {".", true},
	} {
		dir, w := written(t)
		within(t, func() {
			err := w.Replace(c.name, []byte("new"), 0o640)
			if c.refused != (err != nil) {
				t.Errorf("%q: %v", c.name, err)
			}
		})
		isUnchanged(t, dir)
		if left, _ := filepath.Glob(filepath.Join(dir, "*", ".new-*")); len(left) > 0 {
			t.Errorf("%q: left %v", c.name, left)
		}
		if c.refused {
			continue
		}
		text, info, err := w.Read(c.name, 10)
		if err != nil || string(text) != "new" || info.Mode() != 0o640 {
			t.Errorf("%q: %q, %v, %v", c.name, text, info, err)
		}
	}
}

// TestReplaceAfterAKill begins where a process ended between two steps of Replace: its leftovers are never read, do no
// harm and are removed by the next call for the name.
func TestReplaceAfterAKill(t *testing.T) {
	for what, leave := range map[string]func(dir string) error{
		"an empty file": func(dir string) error { return os.WriteFile(filepath.Join(dir, ".new-plain"), nil, 0o600) },
		"a part": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".new-plain"), []byte("ne"),
				0o600)
		},
		"all of it": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".new-plain"),
				[]byte("newer"), 0o640)
		},
		"a link that leads out": func(dir string) error { return os.Symlink("../outside", filepath.Join(dir, ".new-plain")) },
		"another name of a file": func(dir string) error {
			return os.Link(filepath.Join(dir, "..", "outside"), filepath.Join(dir, ".new-plain"))
		},
	} {
		for then, do := range map[string]func(w *files.Writing) error{
			"replace": func(w *files.Writing) error { return w.Replace("plain", []byte("newer"), 0o600) },
			"remove":  func(w *files.Writing) error { return w.Remove("plain") },
		} {
			dir, w := written(t)
			must.Do(t, leave(dir))
			if text, _, err := w.Read("plain", 10); err != nil || string(text) != "0123456789" {
				t.Errorf("%s: before, %q, %v", what, text, err)
			}
			if err := do(w); err != nil {
				t.Errorf("%s, %s: %v", what, then, err)
			}
			isUnchanged(t, dir)
			entries, _, err := w.Entries(".", 100)
			if err != nil || slices.ContainsFunc(entries,
				func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".new") }) {
				t.Errorf("%s, %s: left %v, %v", what, then, entries, err)
			}
			if text, _, err := w.Read("plain", 10); then == "replace" && (err != nil || string(text) != "newer") ||
				then == "remove" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, %s: after, %q, %v", what, then, text, err)
			}
		}
	}
}

// TestReplaceIsWhole reads a file while it is replaced again and again.
func TestReplaceIsWhole(t *testing.T) {
	dir, w := written(t)
	texts := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<16)}
	must.Do(t, w.Replace("plain", []byte(texts[0]), 0o600))
	done := make(chan error)
	go func() {
		for i := range 50 {
			if err := files.Replace(filepath.Join(dir, "plain"), []byte(texts[i%2]), 0o600); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for reading := true; reading; {
		if text, _, err := w.Read("plain", 1<<17); err != nil || !slices.Contains(texts, string(text)) {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		select {
		case err := <-done:
			if reading = false; err != nil {
				t.Error(err)
			}
		default:
		}
	}
}

func TestWhatIsMadeAndRemovedBelowAFolder(t *testing.T) {
	dir, w := written(t)
	for name, want := range map[string]error{"fresh": nil, "folder": nil, "plain": files.ErrNotFolder,
		"pipe": files.ErrNotFolder, "out": files.ErrNotFolder, "folder/fresh": nil} {
		if err := w.Mkdir(name, 0o700); !errors.Is(err, want) {
			t.Errorf("Mkdir %s: %v, want %v", name, err, want)
		}
	}
	for name, want := range map[string]error{"plain": nil, "inside": files.ErrNotRegular, "pipe": files.ErrNotRegular,
		"folder": files.ErrNotRegular, "out": files.ErrNotRegular, "nothing": fs.ErrNotExist} {
		within(t, func() {
			if err := w.Append(name, []byte("x")); !errors.Is(err, want) {
				t.Errorf("Append %s: %v, want %v", name, err, want)
			}
		})
	}
	for name, want := range map[string]error{"plain": nil, "inside": files.ErrNotRegular, "pipe": files.ErrNotRegular,
		"folder": files.ErrNotRegular, "out": files.ErrNotRegular, "lock": nil} {
		within(t, func() {
			f, err := w.OpenLock(name)
			if !errors.Is(err, want) {
				t.Errorf("OpenLock %s: %v, want %v", name, err, want)
			}
			if f != nil {
				_ = f.Close()
			}
		})
	}
	if text, _, err := w.Read("plain", 100); err != nil || string(text) != "0123456789x" {
		t.Errorf("%q, %v", text, err)
	}
	for name, refused := range map[string]bool{"out": false, "pipe": false, "nothing": false, "../outside": true} {
		if err := w.Remove(name); refused != (err != nil) {
			t.Errorf("Remove %s: %v", name, err)
		}
	}
	inner, err := w.Folder("folder")
	must.Do(t, err)
	defer inner.Close()
	if inner.Replace("../plain", nil, 0o600) == nil {
		t.Error("a folder let what is above it be written")
	}
	isUnchanged(t, dir)
}

func TestWhatIsMadeBelowAFolderStaysThere(t *testing.T) {
	dir, w := written(t)
	must.Do(t, w.Symlink("..", "up"))
	for name, do := range map[string]func(below string) error{
		"Put":      func(below string) error { return w.Put(below+"/new/put.md", []byte("x"), 0o600) },
		"Create":   func(below string) error { return w.Create(below+"/create.md", []byte("x"), 0o600) },
		"MkdirAll": func(below string) error { return w.MkdirAll(below+"/a/b", 0o700) },
		"Extract":  func(below string) error { return w.Extract(below+"/extract.md", strings.NewReader("x"), 0o600) },
		"Symlink":  func(below string) error { return w.Symlink("create.md", below+"/link.md") },
		"Move":     func(below string) error { return w.Move("plain", below+"/moved/plain") },
	} {
		if do("up") == nil || do("..") == nil || do("out") == nil {
			t.Errorf("%s follows a link out of the folder", name)
		}
		if err := do("folder"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.Create("folder/create.md", nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create writes over a file: %v", err)
	}
	if err := w.RemoveAll("folder/a"); err != nil || w.Has("folder/a") || !w.Has("folder") {
		t.Errorf("RemoveAll: %v", err)
	}
	isUnchanged(t, dir)
}

// FuzzNames holds that no name reaches what lies outside of the folder.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"plain", "../outside", "out", "folder/../../outside", "//outside", "folder/./../out",
		"out/", "a\x00b", "pipe", "loop/x", "."} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		dir, w := written(t)
		if text, _, err := w.Read(name, 100); err == nil && string(text) == "secret" {
			t.Errorf("%q reads what lies outside", name)
		}
		_ = w.Append(name, []byte("x"))
		_ = w.Mkdir(name, 0o700)
		_ = w.Replace(name, []byte("x"), 0o600)
		_ = w.Remove(name)
		_ = w.Put(name, []byte("x"), 0o600)
		_ = w.Create(name+"x", []byte("x"), 0o600)
		_ = w.Move(name, "moved")
		_ = w.Move("folder", name)
		_ = w.RemoveAll(name)
		isUnchanged(t, dir)
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 2 {
			t.Errorf("%q: beside the folder are %v, %v", name, entries, err)
		}
	})
}

// TestADirHasNoWayToWrite holds what a package can do that is given a Dir: the methods that are here read.
func TestADirHasNoWayToWrite(t *testing.T) {
	var has []string
	for m := range reflect.TypeFor[*files.Dir]().Methods() {
		has = append(has, m.Name)
	}
	if want := []string{"Close", "Entries", "FS", "Folder", "Has", "Itself", "Lstat", "Name", "Open", "Read",
		"Stat"}; !slices.Equal(has, want) {
		t.Errorf("a Dir has %v, want %v", has, want)
	}
	_, d := opened(t)
	f, _, err := d.Open("plain")
	must.Do(t, err)
	defer f.Close()
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("a file of a Dir was written")
	}
}
