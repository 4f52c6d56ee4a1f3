package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// toolsetWorld is an operator's environment in which every toolset is on, and files name variables.
func toolsetWorld(t *testing.T) map[string]string {
	dir := files.Resolve(t.TempDir())
	operationtest.WriteFiles(t, dir, map[string]string{
		"home/.fractary/config.json": `{"registries": [
			{"name": "team", "type": "manifest", "url": "https://registry.example.org/registry.json", "auth": {"type": "bearer", "token_env": "TEAM_REGISTRY"}},
			{"name": "bad", "type": "manifest", "url": "https://bad.example.org/registry.json", "auth": {"type": "bearer", "token_env": "GITHUB_TOKEN_TWO"}}]}`,
		"state/sources.yaml": "sources:\n  - {origin: https://git.example.org, token_env: SOURCE_TOKEN}\n  - {origin: " +
			"https://other.example.org}\n",
		"policy.yaml":  "version: 1\nsources:\n  - {origin: https://ops.example.org, token_env: POLICY_TOKEN}\n",
		"scripts.yaml": "env: [KUBECONFIG, CLAUDEOPS_MARK_KEY, SOURCE_TOKEN]\n",
	})
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

// namesIn are the variables in what a client reads as JSON, and form is the text with one line, of NAME, in place of
// those that are alike but for their names.
func namesIn(text string) (names []string, form string) {
	variable := regexp.MustCompile(`^ +"([A-Z_]+)": `)
	last := ""
	for line := range strings.Lines(text) {
		if m := variable.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
			line = strings.Replace(strings.ReplaceAll(line, m[1], "NAME"), ",\n", "\n", 1)
			if line == last {
				continue
			}
		}
		last = line
		form += line
	}
	return names, form
}

// TestWhatEachClientReadsNamesEveryVariable has the list of variables of one client of those that read JSON.
func TestWhatEachClientReadsNamesEveryVariable(t *testing.T) {
	t.Parallel()
	env := toolsetWorld(t)
	named := map[string][]string{}
	program := must.Get(os.Executable())(t)
	for name, args := range map[string][]string{
		"claude": {"--client", "claude"}, "codex": {"--client", "codex"}, "gemini": {"--client", "gemini"},
		"cursor": {"--client", "cursor"}, "vscode": {"--client", "vscode"},
		"claude-add": {"--client", "claude", "--add"}, "codex-add": {"--client", "codex", "--add"},
		"gemini-add": {"--client", "gemini", "--add"}, "vscode-add": {"--client", "vscode", "--add"},
		"claude-socket": {"--connect", "unix:/run/mcp.sock"},
		"claude-ticket": {"--connect", "unix:/run/mcp.sock", "--ticket-file", "/run/ticket", "--tier", "1", "--dry-run",
			"--read-only"},
		"claude-address":     {"--client", "claude", "--url", "https://ops.example.org"},
		"codex-socket":       {"--connect", "unix:/run/mcp.sock", "--client", "codex"},
		"codex-address":      {"--client", "codex", "--url", "https://ops.example.org"},
		"gemini-address":     {"--client", "gemini", "--url", "https://ops.example.org"},
		"gemini-address-add": {"--client", "gemini", "--url", "https://ops.example.org", "--add"},
		"cursor-address":     {"--client", "cursor", "--url", "https://ops.example.org"},
		"vscode-address":     {"--client", "vscode", "--url", "https://ops.example.org"},
	} {
		out, errs, code := runArgs(t, env, append([]string{"mcp-config"}, args...)...)
		if code != 0 || strings.Contains(out+errs, "value-of-") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
		dir := filepath.Dir(env["HOME"])
		text := strings.NewReplacer(files.Resolve(program), "/bin/claudeops",
			filepath.Join(filepath.Dir(files.Resolve(program)), "claudeops-connect"), "/bin/claudeops-connect",
			dir, "/operator").Replace(out)
		names, form := namesIn(text)
		if named[name] = names; name != "claude" {
			text = form
		}
		operationtest.Golden(t, filepath.Join("testdata", "clients", name+".txt"), []byte(text))
	}
	for _, other := range []string{"gemini", "cursor", "vscode"} {
		if !slices.Equal(named[other], named["claude"]) {
			t.Errorf("%s names %v", other, named[other])
		}
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
		write(t, filepath.Join(filepath.Dir(env["HOME"]), file), "{broken")
		out, errs, code := runArgs(t, env, "mcp-config", "--client", "codex")
		if code != 0 || !strings.Contains(errs, want) || !strings.Contains(out, `"POLICY_TOKEN"`) {
			t.Errorf("%s: exit %d\n%s%s", file, code, out, errs)
		}
	}
}
