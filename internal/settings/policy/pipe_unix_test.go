//go:build unix

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/settings/policy"
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

func TestAPolicyThatIsNoFileIsSaidAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	for _, make := range notFiles(t, name) {
		make()
		within(t, func() {
			if _, err := policy.Load(name); err == nil ||
				!strings.Contains(err.Error(), name+" cannot be read: is no regular file") {
				t.Error(err)
			}
		})
	}
}
