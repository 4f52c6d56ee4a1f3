//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
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

func TestASecretsFileThatIsNoneDoesNotKeepTheServerFromStarting(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	for _, make := range notFiles(t, name) {
		make()
		for _, variable := range []string{"GITHUB_TOKEN_FILE", "FRACTARY_REGISTRY_TOKEN_FILE", "CLAUDEOPS_API_TOKENS_FILE",
			"CLAUDEOPS_DEPLOY_GIT_CREDENTIALS", "ANTHROPIC_API_KEY_FILE"} {
			within(t, func() {
				c := config.Load(func(v string) (string, bool) {
					return map[string]string{variable: name}[v], v == variable
				}, forges.All())
				if strings.HasSuffix(variable, "_FILE") && !strings.Contains(strings.Join(c.Warnings, "\n"),
					variable+" names a file that cannot be read") {
					t.Errorf("%s: %v", variable, c.Warnings)
				}
			})
		}
	}
}
