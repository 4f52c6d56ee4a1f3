package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
)

// toolsetWorld is an operator's environment in which every toolset is on, and files name variables.
func toolsetWorld(t *testing.T) map[string]string {
	dir := files.Resolve(t.TempDir())
	for name, text := range map[string]string{
		"home/.fractary/config.json": `{"registries": [
			{"name": "team", "type": "manifest", "url": "https://registry.example.org/registry.json", "auth": {"type": "bearer", "token_env": "TEAM_REGISTRY"}},
			{"name": "bad", "type": "manifest", "url": "https://bad.example.org/registry.json", "auth": {"type": "bearer", "token_env": "GITHUB_TOKEN_TWO"}}]}`,
		"state/sources.yaml": "sources:\n  - {origin: https://git.example.org, token_env: SOURCE_TOKEN}\n  - {origin: " +
			"https://other.example.org}\n",
		"policy.yaml":  "version: 1\nsources:\n  - {origin: https://ops.example.org, token_env: POLICY_TOKEN}\n",
		"scripts.yaml": "env: [KUBECONFIG, CLAUDEOPS_MARK_KEY, SOURCE_TOKEN]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{
		"HOME": filepath.Join(dir, "home"), "CLAUDEOPS_TOOLSETS": "pr,definitions,deploy,packages,scripts",
		"CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"),
		"CLAUDEOPS_POLICY":    filepath.Join(dir, "policy.yaml"), "CLAUDEOPS_SCRIPTS": filepath.Join(dir, "scripts.yaml"),
		"CLAUDEOPS_REPOS_DIR": filepath.Join(dir, "none"),
		"TEAM_REGISTRY":       "value-of-team", "SOURCE_TOKEN": "value-of-source", "POLICY_TOKEN": "value-of-policy",
		"KUBECONFIG":   "value-of-kube",
		"GITHUB_TOKEN": "value-of-github", "HTTPS_PROXY": "http://value-of-proxy",
	}
}

func TestWhatEachClientReadsNamesEveryVariable(t *testing.T) {
	t.Parallel()
	env := toolsetWorld(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"claude": {"--client", "claude"}, "codex": {"--client", "codex"}, "gemini": {"--client", "gemini"},
		"cursor": {"--client", "cursor"}, "vscode": {"--client", "vscode"},
		"claude-add": {"--client", "claude", "--add"}, "codex-add": {"--client", "codex", "--add"},
		"gemini-add":     {"--client", "gemini", "--add"},
		"claude-socket":  {"--connect", "unix:/run/mcp.sock"},
		"claude-address": {"--client", "claude", "--url", "https://ops.example.org"},
		"codex-socket":   {"--connect", "unix:/run/mcp.sock", "--client", "codex"},
		"codex-address":  {"--client", "codex", "--url", "https://ops.example.org"},
		"gemini-address": {"--client", "gemini", "--url", "https://ops.example.org"},
	} {
		var out, errOut bytes.Buffer
		code := Run(context.Background(), append([]string{"mcp-config"}, args...),
			Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, valuesOf(env))
		if code != 0 || strings.Contains(out.String()+errOut.String(), "value-of-") {
			t.Errorf("%s: exit %d\n%s%s", name, code, &out, &errOut)
		}
		dir := filepath.Dir(env["HOME"])
		text := strings.NewReplacer(files.Resolve(program), "/bin/claudeops",
			filepath.Join(filepath.Dir(files.Resolve(program)), "claudeops-connect"), "/bin/claudeops-connect",
			dir, "/operator").Replace(out.String())
		compareWithGolden(t, filepath.Join("testdata", "clients", name+".txt"), text)
	}
}

func valuesOf(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func compareWithGolden(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || got != string(want) {
		t.Errorf("%s (%v): have\n%s", name, err, got)
	}
}

// A file that cannot be read costs the variables that it names, and is said.
func TestWhatCannotBeReadNamesNothingAndIsSaid(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"home/.fractary/config.json": "the registries of definitions cannot be read",
		"state/sources.yaml":         "the list of sources", "scripts.yaml": "CLAUDEOPS_SCRIPTS",
	} {
		env := toolsetWorld(t)
		if err := os.WriteFile(filepath.Join(filepath.Dir(env["HOME"]), file), []byte("{broken"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		code := Run(context.Background(), []string{"mcp-config", "--client", "codex"},
			Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, valuesOf(env))
		if code != 0 || !strings.Contains(errOut.String(), want) || !strings.Contains(out.String(), `"POLICY_TOKEN"`) {
			t.Errorf("%s: exit %d\n%s%s", file, code, &out, &errOut)
		}
	}
}
