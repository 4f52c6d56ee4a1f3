package scripts

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// atOnce returns the result of a look that waits for nothing.
func atOnce(t *testing.T, s Settings) (names string, why string) {
	t.Helper()
	operationtest.InTime(t, 2*time.Minute, "looking for scripts", func() {
		found, skipped := discoverAll(s)
		for _, f := range found {
			names += f.Name + " "
		}
		for _, s := range skipped {
			why += s.Path + " " + s.Why + "\n"
		}
	})
	return names, why
}

// Whatever lies where a script is looked for, the look ends, and the others are offered.
func TestNamedPipesAndDevicesAreNoScripts(t *testing.T) {
	dir := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{defaultFolder + "/good.sh": "#!/bin/sh\n"})
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, syscall.Mkfifo(at(defaultFolder+"/pipe.sh"), 0o600),
		syscall.Mkfifo(at(defaultFolder+"/pipe.ps1"), 0o600), syscall.Mkfifo(at("build.ps1"), 0o600),
		os.Symlink("/dev/zero", at(defaultFolder+"/zero.ps1")), os.Mkdir(at("test.ps1"), 0o750),
		syscall.Mkfifo(at("extra"), 0o600), os.Symlink("extra", at("link")))
	s := DefaultSettings(dir)
	s.Extra = map[string]string{"extra": at("extra"), "link": at("link"), "below": at("extra/x")}
	names, why := atOnce(t, s)
	if names != "good " {
		t.Errorf("found %s", names)
	}
	for _, said := range []string{"pipe.ps1 is not a regular file", "build.ps1 is not a regular file", "zero.ps1",
		"test.ps1 is not a regular file", "extra is not a regular file", "link is not a regular file"} {
		if !strings.Contains(why, said) {
			t.Errorf("%q is not said:\n%s", said, why)
		}
	}
	for _, folder := range []string{"extra", "link"} {
		s = DefaultSettings(dir)
		s.Folder = folder
		if names, why := atOnce(t, s); names != "" || !strings.Contains(why, "cannot be read") {
			t.Errorf("%s: %s, %s", folder, names, why)
		}
	}
}

// A link in the working folder, which the author of the checkout may have made, names no scripts outside. The
// operator's settings may.
func TestALinkInTheWorkingFolderNamesNoScriptsOutside(t *testing.T) {
	outside := operationtest.WriteExecutables(t, t.TempDir(),
		map[string]string{"Agent/secret.sh": "#!/bin/sh\n", "other.sh": "#!/bin/sh\n"})
	for link, to := range map[string]string{"scripts": outside, defaultFolder: filepath.Join(outside, "Agent")} {
		dir := t.TempDir()
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o750),
			os.Symlink(to, filepath.Join(dir, link)), os.Symlink(outside, filepath.Join(dir, "tools")))
		s := DefaultSettings(dir)
		s.Extra = map[string]string{"other": filepath.Join(dir, "tools", "other.sh")}
		names, why := atOnce(t, s)
		if names != "" || strings.Count(why, "leads out of the working folder") != 2 {
			t.Errorf("%s: found %s\n%s", link, names, why)
		}
		s.Folder, s.Extra = filepath.Join(outside, "Agent"), map[string]string{"other": filepath.Join(outside, "other.sh")}
		if names, why := atOnce(t, s); names != "other secret " {
			t.Errorf("the operator's: %s\n%s", names, why)
		}
	}
	for _, to := range []string{"../tools", "tools"} {
		dir := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{"tools/a.sh": "#!/bin/sh\n"})
		if to == "tools" {
			to = filepath.Join(dir, to)
		}
		must.Do(t, os.Mkdir(filepath.Join(dir, "scripts"), 0o750),
			os.Symlink(to, filepath.Join(dir, defaultFolder)))
		if names, why := atOnce(t, DefaultSettings(dir)); names != "a " {
			t.Errorf("a link within, %s: %s\n%s", to, names, why)
		}
	}
}
