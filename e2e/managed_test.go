//go:build e2e && linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// managed is a machine whose administrator manages Claude Code, and a forge that its agents should not reach.
type managed struct {
	*world
	project string
	forge   *httptest.Server
	reached atomic.Int32 // requests that the forge got
	system  []string     // arguments of bubblewrap that put the administrator's files into the system folder
}

func newManaged(t *testing.T) *managed {
	t.Helper()
	m := &managed{world: newWorld(t, "2"), project: t.TempDir()}
	m.forge = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { m.reached.Add(1) }))
	t.Cleanup(m.forge.Close)
	// What a project brings by itself: a server, a hook, and leave for all of it.
	operationtest.WriteFiles(t, m.project, map[string]string{
		".mcp.json": fmt.Sprintf(`{"mcpServers": {"forge": {"type": "http", "url": "%s/mcp"}}}`, m.forge.URL),
		".claude/settings.json": fmt.Sprintf(`{"enableAllProjectMcpServers": true, "permissions": {"allow":
			["Bash", "WebFetch"]}, "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command":
			"curl -s %s/hook"}]}]}}`, m.forge.URL),
	})
	return m
}

// administer puts what mcp-config prints where Claude Code looks for an administrator's files. A person's leave for all
// commands is among it: what keeps the agent from the forge then is not a question that nobody answers.
func (m *managed) administer(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	for name, args := range map[string][]string{
		"managed-mcp.json":      {"mcp-config"},
		"managed-settings.json": {"mcp-config", "--managed-settings"},
	} {
		text := m.does(t, args...)
		if name == "managed-settings.json" {
			text = replaceOnce(t, text, `"mcp__claudeops"`, `"mcp__claudeops", "Bash"`)
		}
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	m.system = []string{"--dev-bind", "/", "/", "--tmpfs", "/etc"}
	entries := must.Get(os.ReadDir("/etc"))(t)
	for _, entry := range entries {
		file := "/etc/" + entry.Name()
		if _, err := os.Stat(file); err == nil && entry.Name() != "claude-code" { // no link that leads nowhere
			m.system = append(m.system, "--ro-bind", file, file)
		}
	}
	m.system = append(m.system, "--ro-bind", folder, "/etc/claude-code")
}

// claude runs the CLI on this machine.
func (m *managed) claude(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	words := append(append([]string{"bwrap"}, m.system...), theCLI(t))
	if m.system == nil {
		words = words[1:]
	}
	words = append(words, args...)
	return run(t, program{path: words[0], args: words[1:], dir: m.project, env: m.environment(append(env,
		"ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")...)})
}

// An agent that a person starts on a managed machine proposes by our server, and has no other way to the forge; without
// the administrator's files it has several.
func TestManagedSettingsLeaveNoOtherWayToAForge(t *testing.T) {
	t.Parallel()
	m, p := newManaged(t), quieterDisk()
	curl := func(path string, more map[string]any) reply {
		args := map[string]any{"command": "curl -sS -m 100 " + m.forge.URL + path, "description": "Ask the forge"}
		for name, value := range more {
			args[name] = value
		}
		return reply{tool: "Bash", args: args}
	}
	turns := []reply{
		curl("/api/v1/user", nil),
		curl("/unsandboxed", map[string]any{"dangerouslyDisableSandbox": true}),
		{tool: "WebFetch", args: map[string]any{"url": m.forge.URL, "prompt": "Who am I?"}},
		use("create_pr", p),
	}
	plugin, err := filepath.Abs("../plugins/claudeops") // which brings a server of its own
	must.Do(t, err)
	tell := func(t *testing.T) (startEvent, []seenResult) {
		stub := newMessagesStub(t, nil)
		stub.asked = func(_ string, results []seenResult) reply {
			if len(results) < len(turns) {
				return turns[len(results)]
			}
			return say("done")
		}
		got := m.claude(t, []string{"ANTHROPIC_BASE_URL=" + stub.URL}, "-p", "Look after the cluster.", "--output-format",
			"stream-json", "--verbose", "--allowedTools", "Bash", "--plugin-dir", plugin)
		if got.code != 0 {
			t.Fatalf("claude: exit %d\n%s%s", got.code, got.stdout, got.stderr)
		}
		first, _, _ := strings.Cut(got.stdout[strings.Index(got.stdout, `{"type":"system","subtype":"init"`):], "\n")
		return decode[startEvent](t, first), stub.seen(t).results()
	}
	_, results := tell(t)
	if m.reached.Swap(0) < 3 || results[0].isError {
		t.Errorf("the forge is not reached on a machine that nobody manages: %+v", results)
	}
	m.administer(t)
	start, results := tell(t)
	if n := m.reached.Load(); n > 0 {
		t.Errorf("the forge got %d requests", n)
	}
	if len(start.Servers) != 1 || start.Servers[0].Name != "claudeops" || start.Servers[0].Status != "connected" {
		t.Errorf("servers %+v", start.Servers)
	}
	for i, r := range results[:3] {
		if !r.isError {
			t.Errorf("call %d was not refused: %s", i, r.text)
		}
	}
	m.assertProposed(t, quieterDiskBranch, p)
	for _, args := range [][]string{
		{"mcp", "add", "--transport", "http", "forge", m.forge.URL},
		{"-p", "x", "--mcp-config", ".mcp.json", "--strict-mcp-config"},
	} {
		if got := m.claude(t, nil, args...); got.code == 0 || !strings.Contains(got.stdout+got.stderr, "enterprise MCP") {
			t.Errorf("%v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
}

// Claude Code takes no MCP server from its arguments on such a machine, and a session's server is its own. So none
// starts, which costs nothing and is said before it would.
func TestNoSessionStartsWhereAnAdministratorNamesTheServers(t *testing.T) {
	m, o := newManaged(t), newOperator(t)
	m.administer(t)
	stub := newSessionStub(t, scriptedSession(use("create_pr", quieterDisk())))
	tell := func(args ...string) outcome {
		words := append(append([]string{}, m.system...), claudeops(t))
		return run(t, program{path: "bwrap", args: append(words, args...), dir: t.TempDir(), env: o.environment(stub.URL)})
	}
	const file = "/etc/claude-code/managed-mcp.json names the only MCP servers"
	if got := tell("run", "--tier", "2"); got.code == 0 || !strings.Contains(got.stderr, file) {
		t.Errorf("run: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := tell("doctor"); got.code == 0 || !strings.Contains(got.stdout, file) {
		t.Errorf("doctor: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if asked := stub.requests(t); len(asked) > 0 {
		t.Errorf("the model was asked %d times", len(asked))
	}
	if got := o.git(t, "", "branch", "--list"); strings.TrimSpace(got) != "* main" {
		t.Errorf("branches: %s", got)
	}
}
