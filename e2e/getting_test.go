//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pluginTools are the names that Claude Code gives to the tools of the plugin's server.
const pluginTools = "mcp__plugin_claudeops_claudeops__"

func TestClaudeTakesThePluginAndTheMarketplace(t *testing.T) {
	w := newWorld(t, "2")
	for _, folder := range []string{"..", "../plugins/claudeops"} {
		full, err := filepath.Abs(folder)
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, program{
			path: installed(t, "@anthropic-ai/claude-code-linux-*/claude"), args: []string{"plugin", "validate", full},
			dir: t.TempDir(), env: w.environment("DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"),
		})
		if said := got.stdout + got.stderr; got.code != 0 || !strings.Contains(said, "Validation passed") {
			t.Errorf("%s: exit %d\n%s", folder, got.code, said)
		}
	}
}

// An agent with the plugin gets its server, connected, with the three tools, and its skill; a call of a tool opens a
// pull request.
func TestClaudeWithThePluginProposes(t *testing.T) {
	w, p := newWorld(t, "2"), quieterDisk()
	folder, err := filepath.Abs("../plugins/claudeops")
	if err != nil {
		t.Fatal(err)
	}
	stub := newMessagesStub(t, nil)
	stub.asked = func(_ string, results []seenResult) reply {
		if len(results) == 0 { // the tools are there without a search
			return reply{tool: pluginTools + "create_pr", args: p}
		}
		return say("done")
	}
	got := run(t, program{
		path: installed(t, "@anthropic-ai/claude-code-linux-*/claude"),
		args: []string{"-p", "Look after the cluster.", "--output-format", "stream-json", "--verbose", "--plugin-dir", folder,
			"--allowedTools", pluginTools + "*"},
		dir: t.TempDir(), env: w.environment("ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=dummy",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "PATH="+filepath.Dir(claudeops(t))+":"+
				os.Getenv("PATH")),
	})
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.code != 0 {
		t.Fatalf("claude: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	start := decode[struct {
		startEvent
		Skills []string `json:"skills"`
	}](t, lines[0])
	if len(start.Servers) != 1 || start.Servers[0].Name != "plugin:claudeops:claudeops" ||
		start.Servers[0].Status != "connected" {
		t.Errorf("servers %+v", start.Servers)
	}
	for _, tool := range []string{"create_pr", "list_prs", "get_pr_status"} {
		if !slices.Contains(start.Tools, pluginTools+tool) {
			t.Errorf("%s is not among the tools %q", tool, start.Tools)
		}
	}
	if !slices.Contains(start.Skills, "claudeops:propose-change") {
		t.Errorf("skills %q", start.Skills)
	}
	w.assertProposed(t, quieterDiskBranch, p)
}
