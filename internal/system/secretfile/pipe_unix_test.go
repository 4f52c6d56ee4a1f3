//go:build unix

package secretfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/secretfile"
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

func TestASecretThatIsNoFileIsSaidAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	for _, make := range notFiles(t, name) {
		make()
		within(t, func() {
			if text, err := secretfile.Read(name); text != "" || !errors.Is(err, files.ErrNotRegular) {
				t.Errorf("%q, %v", text, err)
			}
			fresh := func() (string, error) { return "fresh", nil }
			if text, err := secretfile.Load(filepath.Dir(name), filepath.Base(name), fresh); text != "" ||
				!errors.Is(err, files.ErrNotRegular) {
				t.Errorf("%q, %v", text, err)
			}
			if text := secretfile.New(name, "first", nil).Reread(); text != "first" {
				t.Errorf("%q", text)
			}
		})
	}
}
