//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
)

// exitIsError is the exit code of the Inspector's CLI when a tool answers isError (Inspector 2.12.0).
const exitIsError = 5

// inspector is the MCP Inspector's command line, which spawns a server for each call.
type inspector struct {
	world *world
	era   string // legacy (initialize) or modern (stateless, protocol 2026-07-28)
}

// call runs one method. The Inspector passes on only the variables that it is told to.
func (i inspector) call(t *testing.T, method string, args ...string) outcome {
	t.Helper()
	all := []string{
		installed(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
		"--cli", claudeops(t), "mcp-server", "--protocol-era", i.era, "--format", "json", "-q", "--method", method,
	}
	for _, v := range i.world.variables() {
		all = append(all, "-e", v)
	}
	return run(t, program{
		path: installed(t, "node-linux-*/bin/node"), args: append(all, args...),
		dir: i.world.home, env: i.world.environment(),
	})
}

// toolResult is a tool's answer, as the Inspector prints it.
type toolResult struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Meta       struct {
		Server struct {
			Name string `json:"name"`
		} `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
}

// tool calls a tool and returns its result and the decoded structured content.
func (i inspector) tool(t *testing.T, name string, arguments any, exit int) (toolResult, answer) {
	t.Helper()
	got := i.call(t, "tools/call", "--tool-name", name, "--tool-args-json", encode(t, arguments))
	if got.code != exit {
		t.Fatalf("%s: exit %d, want %d\n%s%s", name, got.code, exit, got.stdout, got.stderr)
	}
	result := decode[struct{ Result toolResult }](t, got.stdout).Result
	if len(result.Content) != 1 || result.IsError != (exit == exitIsError) {
		t.Fatalf("%s: unexpected result %+v", name, result)
	}
	// Only the stateless era names the server in every result: proof that the era is the one that was asked for.
	if modern := result.Meta.Server.Name == "claudeops"; modern != (i.era == "modern") {
		t.Errorf("%s: not an answer of the %s era: %s", name, i.era, got.stdout)
	}
	if !result.IsError && result.Content[0].Text != string(result.Structured) {
		t.Errorf("the text is not the structured content:\n%s\n%s", result.Content[0].Text, result.Structured)
	}
	return result, decode[answer](t, string(result.Structured))
}

// TestInspector starts the Inspector as seldom as it can: it takes a second of the processor each time. That a list has
// the three tools alone is held where a client takes it, and in internal/mcpserver.
func TestInspector(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Run("takes each schema", func(t *testing.T) { inspectorLists(t, era) })
			t.Run("opens and reads a pull request", func(t *testing.T) { inspectorProposes(t, era) })
			t.Run("gets a refusal that names every file", func(t *testing.T) { inspectorIsRefused(t, era) })
		})
	}
}

// inspectorLists asks for tools/list with --strict, which fails for a schema that some clients cannot read, and calls a
// tool whose answer the Inspector holds against its output schema.
func inspectorLists(t *testing.T, era string) {
	i := inspector{newWorld(t, "1"), era}
	i.world.vars["CLAUDEOPS_TOOLSETS"] = "pr,definitions"
	got := i.call(t, "tools/list", "--strict")
	if got.code != 0 { // 6: such a schema
		t.Fatalf("exit %d\n%s", got.code, got.stderr)
	}
	list := decode[struct {
		Result struct {
			Tools []struct {
				Name         string
				Description  string
				InputSchema  map[string]any
				OutputSchema map[string]any
			}
		}
	}](t, got.stdout)
	var ours []string
	described, definitions := 0, 0
	for _, tool := range list.Result.Tools {
		if tool.Description == "" || tool.InputSchema["type"] != "object" || tool.OutputSchema["type"] == nil {
			t.Errorf("not whole: %+v", tool)
		}
		if !strings.HasPrefix(tool.Name, "fractary_forge_") {
			ours = append(ours, tool.Name)
			continue
		}
		definitions++
		described += len(tool.Description)
	}
	const many = 21 // the contract's, and three for skills
	if definitions != many || described > many*600 || !slices.Equal(ours, toolNames()) {
		t.Errorf("%d tools for definitions, described in %d bytes, and %v", definitions, described, ours)
	}
	i.world.project(t, map[string]string{".fractary/agents/reviewer.yaml": agentDefinition("reviewer", "1.2.3", "")})
	result, _ := i.tool(t, "fractary_forge_agent_info", map[string]any{"name": "reviewer"}, 0)
	if info := decode[struct{ Name, Version string }](t, string(result.Structured)); info.Name != "reviewer" ||
		info.Version != "1.2.3" {
		t.Errorf("the agent is %+v", info)
	}
}

func toolNames() []string { return []string{"create_pr", "get_pr_status", "list_prs"} }

func inspectorProposes(t *testing.T, era string) {
	i, p := inspector{newWorld(t, "2"), era}, quieterDisk()
	_, opened := i.tool(t, "create_pr", p, 0)
	assertOpened(t, opened, p)
	_, status := i.tool(t, "get_pr_status", ofFirstPR(), 0)
	assertOpen(t, status, p)
	i.world.assertProposed(t, quieterDiskBranch, p)
}

func inspectorIsRefused(t *testing.T, era string) {
	i := inspector{newWorld(t, "3"), era}
	result, refused := i.tool(t, "create_pr", outOfScope(), exitIsError)
	if !strings.HasPrefix(result.Content[0].Text, "[scope_denied] ") {
		t.Errorf("the text does not begin with the code: %s", result.Content[0].Text)
	}
	assertScopeDenied(t, refused)
	i.world.assertUntouched(t)
}

// freePort returns a port for a program that takes no listener, only a number. Until the test's end no other test gets
// it, in whichever process: an abstract socket stands for it. Linux gives it to no connection that goes out: those have
// ports from 32768 on. e2e/postgres.sh takes lower ones.
func freePort(t *testing.T) int {
	t.Helper()
	const first, many = 20000, 12000
	for range 100 {
		port := first + rand.IntN(many)
		claim, err := net.Listen("unix", fmt.Sprintf("@claudeops-e2e-port-%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			t.Cleanup(func() { _ = claim.Close() })
			return port
		}
		_ = claim.Close()
	}
	t.Fatal("no port is free")
	return 0
}
