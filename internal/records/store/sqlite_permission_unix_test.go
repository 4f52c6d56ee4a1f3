//go:build unix && !postgres

package store

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestOpenWithoutPermissionSaysWhoNeedsIt(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		must.Do(t, os.Chmod(dir, 0o755))
	}
	readable := filepath.Join(base, "readable")
	must.Do(t, os.Mkdir(readable, 0o555))
	existing := filepath.Join(base, "existing")
	change(t, existing)
	must.Do(t, os.Chmod(existing, 0o555))
	for _, dir := range []string{readable, filepath.Join(readable, "state"), existing} {
		cmd := child(t, "open-and-print-error", dir)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out := must.Get(cmd.Output())(t)
		if !strings.Contains(string(out), "[misconfigured] the state folder "+dir+" cannot be written; give the user") {
			t.Errorf("%s: %s", filepath.Base(dir), out)
		}
	}
}
