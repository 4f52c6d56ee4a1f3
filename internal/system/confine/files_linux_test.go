package confine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// What the supervisor does as the agents' user has that user's rights and no other, and the rest of the process keeps
// its own.
func TestFilesAreThoseOfTheAccount(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	dir, err := os.MkdirTemp("/tmp", "confine-files-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := errors.Join(os.Chmod(dir, 0o777), os.WriteFile(dir+"/secret", []byte("x"), 0o600)); err != nil { //nolint:gosec // another user writes there
		t.Fatal(err)
	}
	a := &Account{Name: "agent", UID: agentID, GID: agentID}
	owner := func(path string) (int, int) {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		s := info.Sys().(*syscall.Stat_t)
		return int(s.Uid), int(s.Gid)
	}
	var wg sync.WaitGroup
	for range 20 { // the thread that the process began with is among those that are tried
		wg.Go(func() {
			err := a.As(func() error {
				if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "link")); err != nil &&
					!errors.Is(err, fs.ErrExist) {
					return err
				}
				if _, err := os.ReadFile(filepath.Join(dir, "link")); !errors.Is(err, fs.ErrPermission) {
					t.Errorf("a secret of ours was read: %v", err)
				}
				return os.MkdirAll(filepath.Join(dir, "own"), 0o700)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil {
				t.Errorf("we lost our rights: %v", err)
			}
		})
	}
	wg.Wait()
	if uid, gid := owner(dir + "/own"); uid != agentID || gid != agentID {
		t.Errorf("owned by %d:%d", uid, gid)
	}
	if err := a.WithGroup(func() error { return os.WriteFile(dir+"/shared", nil, 0o640) }); err != nil { //nolint:gosec // the group reads it
		t.Fatal(err)
	}
	if uid, gid := owner(dir + "/shared"); uid != os.Getuid() || gid != agentID {
		t.Errorf("owned by %d:%d", uid, gid)
	}
	if open := a.CanRead([]string{dir + "/secret", dir + "/shared", dir + "/missing"}); len(open) != 1 || open[0] != dir+
		"/shared" {
		t.Errorf("it may read %v", open)
	}
	var none *Account
	if err := none.As(func() error { return os.WriteFile(dir+"/ours", nil, 0o600) }); err != nil {
		t.Fatal(err)
	}
	if uid, _ := owner(dir + "/ours"); uid != os.Getuid() {
		t.Errorf("owned by %d", uid)
	}
}
