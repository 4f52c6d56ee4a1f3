package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/settings/config"
)

func environmentFile(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "environment")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnEnvironmentFileIsRead(t *testing.T) {
	t.Parallel()
	path := environmentFile(t, "# ours\n\nCLAUDEOPS_TIER=2\r\n GITEA_TOKEN = x=y\nA='it is'\nB=\"\"\nC='\n", 0o600)
	if _, err := config.ReadEnvironmentFile(path); err == nil { // a name ends at the equals sign
		t.Error("a name with a space was taken")
	}
	got, err := config.ReadEnvironmentFile(environmentFile(t,
		"# ours\n\nCLAUDEOPS_TIER=2\r\n GITEA_TOKEN= x=y\nA='it is'\nB=\"\"\nC='\n", 0o600))
	want := map[string]string{"CLAUDEOPS_TIER": "2", "GITEA_TOKEN": "x=y", "A": "it is", "B": "", "C": "'"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestEnvironmentFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=1\nnonsense\n":          "line 2 of the environment file",
		"A=1\nA=2\n":               "sets A twice",
		"export A=1\n":             "line 1",
		strings.Repeat("#", 70000): "cannot be read",
	} {
		if _, err := config.ReadEnvironmentFile(environmentFile(t, text, 0o600)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620} {
		if _, err := config.ReadEnvironmentFile(environmentFile(t, "A=1\n", mode)); err == nil ||
			!strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := config.ReadEnvironmentFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestTheEnvironmentWinsOverItsFile(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"SET": "mine", "EMPTY": " ", "OPEN": "${OPEN}"}
	lookup := placesOf(environment,
		map[string]string{"SET": "file", "EMPTY": "file", "OPEN": "file", "ONLY": "file"}).Lookup
	for name, want := range map[string]string{"SET": "mine", "EMPTY": "file", "OPEN": "file", "ONLY": "file", "NONE": ""} {
		if got, _ := lookup(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestWhereTheEnvironmentFileIs(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"/x/claudeops/environment":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/claudeops/environment": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
		"":                                 {"HOME": ""},
	} {
		if got := config.EnvironmentFile(func(name string) (string, bool) { v, ok := env[name]; return v, ok }); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}
