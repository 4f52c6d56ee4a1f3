//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
			if n := len(list.Result.Tools); n != 18 {
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
			if described > 18*600 {
				t.Errorf("descriptions have %d bytes a tool", described/18)
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
