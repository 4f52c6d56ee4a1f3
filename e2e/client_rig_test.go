//go:build e2e && linux

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// client is a real MCP client with what mcp-config prints for it, whose model a test plays.
type client struct {
	name, file string
	// the client's file, given what mcp-config printed and the model's address
	around        func(printed, address string) string
	args          []string
	namesOfOurOwn []string // of our tools in a request to its model
}

// codex asks nobody and lets the server decide.
func codex() client {
	return client{
		name: "codex", file: ".codex/config.toml", args: []string{"exec", "--skip-git-repo-check", "go"},
		around: func(printed, address string) string {
			return "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"" +
				address +
				"/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n" + printed
		},
		namesOfOurOwn: []string{`"mcp__claudeops"`, `"create_pr"`, `"list_prs"`, `"get_pr_status"`},
	}
}

// gemini knows the resources that a server lists, and no templates (Gemini CLI 0.61).
func gemini() client {
	return client{
		name: "gemini", file: ".gemini/settings.json",
		args: []string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"},
		around: func(printed, _ string) string {
			return strings.Replace(printed, "{", `{"security":{"auth":{"selectedType":"gemini-api-key"}},`, 1)
		},
		namesOfOurOwn: []string{"mcp_claudeops_create_pr", "mcp_claudeops_list_prs", "mcp_claudeops_get_pr_status"},
	}
}

// converse runs the client until its model has stopped.
func (c client) converse(t *testing.T, w *world, m model) (sent string, results []seenResult, got outcome) {
	t.Helper()
	home, plays := t.TempDir(), newOtherModel(t, m)
	printed := run(t, program{path: claudeops(t), args: []string{"mcp-config", "--client", c.name}, dir: home,
		env: w.environment()})
	file := filepath.Join(home, c.file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
		os.WriteFile(file, []byte(c.around(printed.stdout, plays.URL)), 0o600)); err != nil {
		t.Fatal(err)
	}
	got = run(t, program{
		path: installed(t, ".bin/"+c.name), args: c.args, dir: t.TempDir(), may: 2 * patience,
		env: w.environment("HOME="+home, "STUB_KEY=x", "GEMINI_API_KEY=x", "GEMINI_CLI_TRUST_WORKSPACE=true",
			"GOOGLE_GEMINI_BASE_URL="+plays.URL),
	})
	sent, results = plays.told()
	return sent, results, got
}
