//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The agent of a session has the toolsets that the operator names, over the folder that the session was started in.
func TestAnAgentCallsToolsOfTheToolsetsThatItsSessionGets(t *testing.T) {
	o := newOperator(t)
	project := t.TempDir()
	agents := filepath.Join(project, ".fractary", "agents")
	if err := os.MkdirAll(agents, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(agents, "reviewer.yaml"), []byte(agentDefinition("reviewer", "1.2.3", "")),
		0o644); err != nil {
		t.Fatal(err)
	}
	for toolsets, want := range map[string]string{"pr,definitions": `"version":"1.2.3"`, "": "No such tool available"} {
		model := scriptedSession(use("fractary_forge_agent_list", map[string]any{"source": "local"}))
		stub := newSessionStub(t, model)
		args := []string{"run", "--json", "--tier", "1"}
		if toolsets != "" {
			args = append(args, "--session-toolsets", toolsets)
		}
		got := run(t, program{path: claudeops(t), args: args, dir: project, env: o.environment(stub.URL)})
		if s := decode[sessions](t, got.stdout).Sessions; got.code != 0 || len(s) != 1 || s[0].State != "succeeded" {
			t.Fatalf("exit %d: %s%s", got.code, got.stdout, got.stderr)
		}
		had := "pr"
		if toolsets != "" {
			had = toolsets
		}
		if s := decode[sessions](t, got.stdout).Sessions; strings.Join(s[0].Toolsets, ",") != had {
			t.Errorf("with %q the record has the toolsets %v", toolsets, s[0].Toolsets)
		}
		if seen := strings.ReplaceAll(stub.seen(t).everything(), `\`, ""); !strings.Contains(seen, want) {
			t.Errorf("with %q the agent did not see %s: %.3000s", toolsets, want, seen)
		}
	}
}
