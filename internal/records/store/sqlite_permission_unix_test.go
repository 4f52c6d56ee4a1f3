//go:build unix && !postgres

package store

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenWithoutPermissionSaysWhoNeedsIt(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	readable := filepath.Join(base, "readable")
	if err := os.Mkdir(readable, 0o555); err != nil {
		t.Fatal(err)
	}
	existing := filepath.Join(base, "existing")
	change(t, existing)
	if err := os.Chmod(existing, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{readable, filepath.Join(readable, "state"), existing} {
		cmd := child(t, "open-and-print-error", dir)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), "[misconfigured] the state folder "+dir+" cannot be written; give the user") {
			t.Errorf("%s: %s", filepath.Base(dir), out)
		}
	}
}
