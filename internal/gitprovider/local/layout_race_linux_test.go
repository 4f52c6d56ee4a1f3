package local

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A reference goes and a folder takes its place, again and again between two looks at the same path.
func TestAFolderInTheReferencesPlaceIsNoFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.Mkdir(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var git sync.WaitGroup
	git.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, file, unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	l := layout{ctx: t.Context(), repo: &repository{root: dir, gitDir: dir}}
	for range 20_000 {
		if _, err := l.listFolder(folder); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	git.Wait()
}
