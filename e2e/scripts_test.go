//go:build e2e && linux

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The real CLI calls a script of the operator as a tool, on this repository.
func TestClaudeCallsAScript(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "2")
	w.vars["CLAUDEOPS_TOOLSETS"] = "pr,scripts"
	w.vars["CLAUDEOPS_SCRIPTS"] = fmt.Sprintf(`{"working_dir": %q, "agent_scripts_dir": "e2e/testdata/scripts"}`, root)
	c := agent{world: w, allow: []string{"mcp__claudeops__git_search"}}.converse(t,
		scripted(use("git_search", map[string]any{"pattern": "TestClaudeCallsAScript", "path": "e2e"})))
	if !slices.Contains(c.start.Tools, "mcp__claudeops__git_search") {
		t.Errorf("tools %v", c.start.Tools)
	}
	if len(c.results) != 1 || c.results[0].isError || !strings.Contains(c.results[0].text, "e2e/scripts_test.go:") ||
		!strings.Contains(c.results[0].text, `"exitCode":0`) {
		t.Errorf("%+v", c.results)
	}
}
