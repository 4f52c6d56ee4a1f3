//go:build e2e && linux

package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// conversation is what a headless run of the Claude CLI said and what its model saw.
type conversation struct {
	start   startEvent
	results []seenResult    // of the calls to our tools
	seen    messagesRequest // the last request
}

// startEvent is the first line of --output-format stream-json.
type startEvent struct {
	Type    string   `json:"type"`
	Subtype string   `json:"subtype"`
	Tools   []string `json:"tools"`
	Servers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
}

// endEvent is the last.
type endEvent struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	IsError bool   `json:"is_error"`
	Result  string `json:"result"`
	Denials []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
}

// agent is the Claude CLI as the container runs it: the project's own MCP configuration and settings.
type agent struct {
	world *world
	// config edits .claude/mcp.json; nil leaves it as it is but for the command's path.
	config func(string) string
	allow  []string // tools that are permitted beside those of the project's settings
	says   string   // what a person says first; "" for the usual
	// container runs the CLI in a container of the image, with the configuration that it has there and more in its
	// environment; nil runs it here.
	container func(t *testing.T, args, more []string) program
}

// converse runs the CLI until the model has stopped, and holds that no call needed a permission.
func (a agent) converse(t *testing.T, m model) conversation {
	t.Helper()
	stub := newMessagesStub(t, m)
	args := []string{"-p", cmp.Or(a.says, "Look after the cluster."), "--output-format", "stream-json", "--verbose",
		"--strict-mcp-config"}
	for _, tool := range a.allow {
		args = append(args, "--allowedTools", tool)
	}
	env := []string{"ANTHROPIC_BASE_URL=" + stub.URL, "ANTHROPIC_API_KEY=dummy",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	got := run(t, a.program(t, args, env))
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.code != 0 || len(lines) < 2 {
		t.Fatalf("claude: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	end := decode[endEvent](t, lines[len(lines)-1])
	if end.Type != "result" || end.Subtype != "success" || end.IsError || end.Result != "done" || len(end.Denials) > 0 {
		t.Errorf("claude did not come to its end: %+v", end)
	}
	seen := stub.seen(t)
	results := seen.results()
	if len(results) == 0 || results[0].isError {
		t.Fatalf("the model could not load our tools: %+v", results)
	}
	return conversation{decode[startEvent](t, lines[0]), results[1:], seen}
}

// program is the CLI with the project's own configuration, here or in the container.
func (a agent) program(t *testing.T, args, env []string) program {
	t.Helper()
	if a.container != nil {
		return a.container(t, args, env)
	}
	settings, err := filepath.Abs("../.claude/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	return program{
		path: installed(t, "@anthropic-ai/claude-code-linux-*/claude"),
		args: append(args, "--mcp-config", a.mcpConfig(t), "--settings", settings),
		dir:  t.TempDir(), env: a.world.environment(append(env, "DISABLE_AUTOUPDATER=1")...),
	}
}

// mcpConfig writes the project's .claude/mcp.json with the built binary in place of the container's.
func (a agent) mcpConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../.claude/mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	config := replaceOnce(t, string(text), `"/app/claudeops"`, encode(t, claudeops(t)))
	if a.config != nil {
		config = a.config(config)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func replaceOnce(t *testing.T, text, old, with string) string {
	t.Helper()
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf(".claude/mcp.json holds %s %d times, want once", old, n)
	}
	return strings.Replace(text, old, with, 1)
}

// connected holds that the CLI found our server and exactly its tools, under the names that settings and prompts use.
func (c conversation) connected(t *testing.T) {
	t.Helper()
	if c.start.Type != "system" || c.start.Subtype != "init" || len(c.start.Servers) != 1 ||
		c.start.Servers[0].Name != "claudeops" || c.start.Servers[0].Status != "connected" {
		t.Fatalf("the server is not connected: %+v", c.start)
	}
	var names []string
	for _, tool := range c.start.Tools {
		if name, ours := strings.CutPrefix(tool, "mcp__"); ours {
			names = append(names, strings.TrimPrefix(name, "claudeops__"))
		}
	}
	if want := toolNames(); !slices.Equal(names, want) {
		t.Errorf("tools of the server are %v, want %v", names, want)
	}
}

// offered returns the definition of a tool of ours that the model had in the end.
func (c conversation) offered(t *testing.T, name string) offeredTool {
	t.Helper()
	for _, tool := range c.seen.Tools {
		if tool.Name == "mcp__claudeops__"+name {
			return tool
		}
	}
	t.Fatalf("the model was not offered %s", name)
	return offeredTool{}
}

// success decodes the result of call n, which the model must see as the bare structured content.
func (c conversation) success(t *testing.T, n int) answer {
	t.Helper()
	if n >= len(c.results) {
		t.Fatalf("the model saw %d results, want one of call %d", len(c.results), n)
	}
	if c.results[n].isError {
		t.Fatalf("call %d failed: %s", n, c.results[n].text)
	}
	return decode[answer](t, c.results[n].text)
}
