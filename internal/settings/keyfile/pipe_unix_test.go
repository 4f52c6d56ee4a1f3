//go:build unix

package keyfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/settings/keyfile"
	"github.com/claudeops/claudeops/internal/system/files"
)

// notFiles makes a named pipe and a link to a device, which never ends.
func notFiles(t *testing.T, name string) []func() {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Dir(name), 0o700))
	return []func(){
		func() { must(unix.Mkfifo(name, 0o600)) },
		func() { must(os.Remove(name)); must(os.Symlink("/dev/zero", name)) },
	}
}

// within fails if do takes longer than what waits for nothing could, on any machine.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

func TestAKeyThatIsNoFileIsSaidAtOnce(t *testing.T) {
	dir := t.TempDir()
	for _, make := range notFiles(t, filepath.Join(dir, keyfile.Name)) {
		make()
		within(t, func() {
			_, err := keyfile.Load(dir)
			_, err2 := keyfile.Find(dir)
			if !errors.Is(err, files.ErrNotRegular) || !errors.Is(err2, files.ErrNotRegular) {
				t.Errorf("%v; %v", err, err2)
			}
		})
	}
}
