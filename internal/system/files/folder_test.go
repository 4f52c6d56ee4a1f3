//go:build unix

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
)

func TestFoldersThatAreListed(t *testing.T) {
	dir, d := opened(t)
	for _, name := range []string{"c", "a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, "folder", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("folder", filepath.Join(dir, "to-folder")); err != nil {
		t.Fatal(err)
	}
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

func TestFoldersThatAreOpened(t *testing.T) {
	dir, _ := made(t)
	for name, want := range map[string]error{"folder": nil, "plain": files.ErrNotFolder, "pipe": files.ErrNotFolder,
		"to-pipe": files.ErrNotFolder, "nothing": fs.ErrNotExist} {
		within(t, func() {
			d, err := files.OpenDir(filepath.Join(dir, name))
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			if d != nil {
				_ = d.Close()
			}
		})
	}
}
