//go:build e2e && linux

package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// hasDefinitions holds that the model got our definitions by tool search, and the server's instructions.
func (c conversation) hasDefinitions(t *testing.T) {
	t.Helper()
	create := c.offered(t, "create_pr")
	schema := decode[struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
		Additional *bool          `json:"additionalProperties"`
	}](t, string(create.InputSchema))
	required := []string{"repo_owner", "repo_name", "title", "body", "files"}
	if !slices.Equal(schema.Required, required) || schema.Additional == nil || *schema.Additional {
		t.Errorf("the model gets another input schema than ours: %s", create.InputSchema)
	}
	if _, found := schema.Properties["tier"]; found || create.Description == "" {
		t.Errorf("the definition has a tier or no description: %+v", create)
	}
	c.offered(t, "get_pr_status")
	c.offered(t, "list_prs")
	if !strings.Contains(c.seen.everything(),
		"This server has tier 2: at most 3 files in one pull request. Paths: checks/*.md") {
		t.Error("the server's instructions did not reach the model")
	}
}

// The CLI loads our definitions, and opens, reuses, lists and reads a pull request. Sessions in the image correct a
// proposal that was refused: they have the same CLI, and see the same text.
func TestClaude(t *testing.T) {
	w := newWorld(t, "2")
	agent{world: w}.proposesOnce(t).hasDefinitions(t)
	w.assertProposed(t, quieterDiskBranch, quieterDisk())
}

// proposesOnce has the model propose twice what becomes one pull request, look at it, and be told why a file is not
// read.
func (a agent) proposesOnce(t *testing.T) conversation {
	t.Helper()
	p := quieterDisk()
	c := a.converse(t, scripted(
		use("create_pr", p), use("create_pr", p), use("list_prs", ofRepository()), use("get_pr_status", ofFirstPR()),
		free("ReadMcpResourceTool", map[string]any{"server": "claudeops",
			"uri": "claudeops://demo/home-cluster/file/README.md"}),
	))
	c.connected(t)
	assertOpened(t, c.success(t, 0), p)
	assertReused(t, c.success(t, 1))
	assertListed(t, c.success(t, 2), p)
	assertOpen(t, c.success(t, 3), p)
	if len(c.results) != 5 || !strings.Contains(c.results[4].text, "[scope_denied] ") {
		t.Errorf("a file that is not the agent's to read: %+v", c.results)
	}
	return c
}

// What mcp-config prints for Claude Code leaves the operator's environment file its word: a dry run of the file holds,
// and so does its tier, at which alone a dry run previews this.
func TestClaudeKeepsToTheEnvironmentFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2")
	delete(w.vars, "CLAUDEOPS_TIER")
	folder := filepath.Join(w.home, ".config", "claudeops")
	must.Do(t, os.MkdirAll(folder, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(folder, "environment"), []byte("CLAUDEOPS_TIER=2\nCLAUDEOPS_DRY_RUN=true\n"),
		0o600))
	printed := w.does(t, "mcp-config")
	if strings.Contains(printed, ":-1}") {
		t.Fatal(printed)
	}
	c := agent{world: w, config: func(string) string { return printed }, allow: []string{"mcp__claudeops__*"}}.
		converse(t, scripted(use("create_pr", quieterDisk())))
	if preview := c.success(t, 0); !preview.DryRun ||
		!strings.Contains(preview.Preview.Diff, "+Warn at 85 %, alarm at <95 % & rising.") {
		t.Errorf("not a preview: %s", c.results[0].text)
	}
	w.assertUntouched(t)
}

// A person types the two prompts as commands of Claude Code, and the model gets their texts: what to do to propose, and
// what a review says with the files that it is about.
func TestPromptsStartWhatAPersonAsksFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2")
	proposed := agent{world: w, says: "/mcp__claudeops__propose-change demo/home-cluster"}.
		converse(t, scripted(use("create_pr", edited(nil, "Warn at 90 %.", "Warn at 85 %."))))
	if text := proposed.seen.everything(); !strings.Contains(text,
		"as one pull request, which a person reviews and merges") ||
		!strings.Contains(text, "repo_owner demo, repo_name home-cluster") {
		t.Errorf("the model was not told how to propose: %s", text)
	}
	operator{w, w.home}.review(t, "request-changes", "--line", "checks/disk.md:3:Say at which figure it becomes urgent.")
	answered := agent{world: w, says: "/mcp__claudeops__answer-review demo/home-cluster 1"}.converse(t,
		answersTheReview(t))
	text := answered.seen.everything()
	for _, want := range []string{"untrusted_review_to_answer", "Say at which figure it becomes urgent.",
		"Warn at 85 %."} {
		if !strings.Contains(text, want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	if last := answered.results[len(answered.results)-1].text; !strings.Contains(last, `"revised":true`) {
		t.Errorf("the review was answered by %s", last)
	}
}

// conversation is the output of a headless run of the Claude CLI, and the input of its model.
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
	settings := must.Get(filepath.Abs("../.claude/settings.json"))(t)
	return program{
		path: theCLI(t),
		args: append(args, "--mcp-config", a.mcpConfig(t), "--settings", settings),
		dir:  t.TempDir(), env: a.world.environment(append(env, "DISABLE_AUTOUPDATER=1")...),
	}
}

// mcpConfig writes the project's .claude/mcp.json with the built binary in place of the container's.
func (a agent) mcpConfig(t *testing.T) string {
	t.Helper()
	config := replaceOnce(t, readFile(t, "../.claude/mcp.json"), `"/app/claudeops"`, encode(t, claudeops(t)))
	if a.config != nil {
		config = a.config(config)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	must.Do(t, os.WriteFile(file, []byte(config), 0o600))
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

// theCLI is the real Claude CLI.
func theCLI(t *testing.T) string {
	t.Helper()
	return installed(t, "@anthropic-ai/claude-code-linux-*/claude")
}

// looksAfter runs the CLI in a folder, with no configuration but what is there, to its end, and returns its events.
func (w *world) looksAfter(t *testing.T, stub *messagesStub, folder string, args ...string) string {
	t.Helper()
	got := run(t, program{
		path: theCLI(t), dir: folder,
		args: append([]string{"-p", "Look after the cluster.", "--output-format", "stream-json", "--verbose"}, args...),
		env: w.environment("ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=dummy",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"),
	})
	if got.code != 0 {
		t.Fatalf("claude: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// pluginTools are the names that Claude Code gives to the tools of the plugin's server.
const pluginTools = "mcp__plugin_claudeops_claudeops__"

func TestClaudeTakesThePluginAndTheMarketplace(t *testing.T) {
	w := newWorld(t, "2")
	for _, folder := range []string{"..", "../plugins/claudeops"} {
		full := must.Get(filepath.Abs(folder))(t)
		got := run(t, program{
			path: theCLI(t), args: []string{"plugin", "validate", full},
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
	folder := must.Get(filepath.Abs("../plugins/claudeops"))(t)
	stub := newMessagesStub(t, nil)
	stub.asked = func(_ string, results []seenResult) reply {
		if len(results) == 0 { // the tools are there without a search
			return reply{tool: pluginTools + "create_pr", args: p}
		}
		return say("done")
	}
	first, _, _ := strings.Cut(w.looksAfter(t, stub, t.TempDir(), "--plugin-dir", folder, "--allowedTools",
		pluginTools+"*"), "\n")
	start := decode[struct {
		startEvent
		Skills []string `json:"skills"`
	}](t, first)
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

// The commands that the guide has for a model of one's own are run as they stand, but for the address and the file: the
// proxy gets the model's name and its key, and the agent proposes.
func TestAModelOfOnesOwnProposesByTheGuide(t *testing.T) {
	w, p := newWorld(t, "2"), quieterDisk()
	stub := newMessagesStub(t, scripted(use("create_pr", p)))
	_, section, _ := strings.Cut(readFile(t, "../docs/guides/clients.md"), "## A model of your own\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, _ = strings.Cut(block, "\n```")
	script := replaceOnce(t, block, "http://127.0.0.1:4000", stub.URL)
	script = replaceOnce(t, script, "~/.config/claudeops/mcp.json", agent{world: w}.mcpConfig(t))
	script = replaceOnce(t, script, "claude ", theCLI(t)+" ")
	got := run(t, program{
		path: "sh", args: []string{"-ec", script + ` -p "Look after the cluster." --allowedTools "mcp__claudeops__*"`},
		dir: t.TempDir(), env: w.environment("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"),
	})
	if got.code != 0 {
		t.Fatalf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if seen := stub.seen(t); seen.Model != "qwen3-coder" || seen.key != "Bearer the-proxys-key" {
		t.Errorf("the proxy got the model %q and the key %q", seen.Model, seen.key)
	}
	w.assertProposed(t, quieterDiskBranch, p)
}
