//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
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

func TestInspector(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Run("lists exactly three tools", func(t *testing.T) { inspectorLists(t, era) })
			t.Run("opens, lists and reads a pull request", func(t *testing.T) { inspectorProposes(t, era) })
			t.Run("gets a refusal that names every file", func(t *testing.T) { inspectorIsRefused(t, era) })
		})
	}
}

func inspectorLists(t *testing.T, era string) {
	i := inspector{newWorld(t, "2"), era}
	got := i.call(t, "tools/list", "--strict")
	if got.code != 0 { // 6: a schema that some clients cannot read
		t.Fatalf("exit %d\n%s", got.code, got.stderr)
	}
	list := decode[struct {
		Result struct {
			Tools []struct{ Name string }
		}
	}](t, got.stdout)
	var names []string
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	if want := toolNames(); !slices.Equal(names, want) {
		t.Errorf("tools are %v, want %v", names, want)
	}
}

func toolNames() []string { return []string{"create_pr", "get_pr_status", "list_prs"} }

func inspectorProposes(t *testing.T, era string) {
	i, p := inspector{newWorld(t, "2"), era}, quieterDisk()
	_, opened := i.tool(t, "create_pr", p, 0)
	assertOpened(t, opened, p)
	_, listed := i.tool(t, "list_prs", ofRepository(), 0)
	assertListed(t, listed, p)
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

// TestTheInspectorTakesEachSchemaOfDefinitions asks for tools/list with --strict, which fails for a schema that some
// clients cannot read, and calls a tool whose answer the Inspector holds against its output schema.
func TestTheInspectorTakesEachSchemaOfDefinitions(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			i := inspector{newWorld(t, "1"), era}
			i.world.vars["CLAUDEOPS_TOOLSETS"] = "definitions"
			got := i.call(t, "tools/list", "--strict")
			if got.code != 0 {
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
			if n := len(list.Result.Tools); n != 21 { // the contract's, and three for skills
				t.Errorf("%d tools", n)
			}
			described := 0
			for _, tool := range list.Result.Tools {
				described += len(tool.Description)
				if !strings.HasPrefix(tool.Name, "fractary_forge_") || tool.Description == "" ||
					tool.InputSchema["type"] != "object" || tool.OutputSchema["type"] == nil {
					t.Errorf("not whole: %+v", tool)
				}
			}
			if described > 21*600 {
				t.Errorf("descriptions have %d bytes a tool", described/21)
			}

			agents := filepath.Join(i.world.home, ".fractary", "agents")
			if err := os.MkdirAll(agents, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(agents, "reviewer.yaml"), []byte(agentDefinition("reviewer", "1.2.3", "")),
				0o644); err != nil {
				t.Fatal(err)
			}
			result, _ := i.tool(t, "fractary_forge_agent_info", map[string]any{"name": "reviewer"}, 0)
			info := decode[struct{ Name, Version string }](t, string(result.Structured))
			if info.Name != "reviewer" || info.Version != "1.2.3" {
				t.Errorf("the agent is %+v", info)
			}
			failed := i.call(t, "tools/call", "--tool-name", "fractary_forge_agent_info", "--tool-args-json",
				`{"name":"nobody","source":"local"}`)
			if failed.code != exitIsError || !strings.Contains(failed.stdout, "AGENT_NOT_FOUND") {
				t.Errorf("exit %d: %s%s", failed.code, failed.stdout, failed.stderr)
			}
		})
	}
}

// The other scenarios of the suite ask for fixture tools, or for what a server without resources and prompts lacks.
func TestConformanceSuite(t *testing.T) {
	w, node := newWorld(t, "2"), installed(t, "node-linux-*/bin/node")
	port := strconv.Itoa(bridge(t, w, node))
	suite := installed(t, "@modelcontextprotocol/conformance/dist/index.js")
	for _, scenario := range []string{"server-initialize", "ping", "tools-list"} {
		t.Run(scenario, func(t *testing.T) {
			got := run(t, program{
				path: node, dir: w.home, env: w.environment(),
				args: []string{suite, "server", "--url", "http://127.0.0.1:" + port + "/mcp", "--scenario", scenario},
			})
			if got.code != 0 {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// bridge serves mcp-server over HTTP on the loopback interface, as the suite takes a URL only, and returns the port.
func bridge(t *testing.T, w *world, node string) int {
	t.Helper()
	port := freePort(t)
	proxy := command(t, program{
		path: node, dir: w.home, env: w.environment(),
		args: []string{
			installed(t, "mcp-proxy/dist/bin/mcp-proxy.mjs"), "--host", "127.0.0.1", "--port", strconv.Itoa(port),
			"--server", "stream", "--", claudeops(t), "mcp-server",
		},
	})
	launch(t, proxy)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = c.Close()
			return port
		}
		time.Sleep(50 * time.Millisecond) // the proxy does not say when it listens
	}
	t.Fatal("mcp-proxy does not listen")
	return 0
}

// freePort returns a port that was free a moment ago: the proxy takes no listener, only a number. Linux gives it to no
// connection that goes out in the meantime: those have ports from 32768 on.
func freePort(t *testing.T) int {
	t.Helper()
	const first, many = 20000, 12000
	for range 100 {
		port := first + rand.IntN(many)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
