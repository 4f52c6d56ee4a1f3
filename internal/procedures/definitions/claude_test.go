package definitions

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const claudeAgent = `---
name: reviewer
description: Reviews code. Use it when: somebody asks
tools: Read, Grep, mcp__claudeops__create_pr
model: sonnet
---
You review code.
`

func TestClaudeCodesOwnAgentsAreListedAndRead(t *testing.T) {
	b := newBench(t, map[string]string{
		".claude/agents/reviewer.md": claudeAgent, ".claude/agents/notes.yaml": "a: b\n",
		".claude/agents/empty.md":      "---\nname: empty\n---\n",
		".claude/agents/deep/agent.md": claudeAgent, ".claude/tools/x.md": claudeAgent,
		".fractary/agents/forge.yaml": agentYAML("forge", "1.0.0"),
	}, map[string]string{".claude/agents/mine.md": "---\nname: mine\ndescription: Mine\ntools:\n  - Read\n---\nDo.\n"})
	b.same("agent_list", `{}`, map[string]any{
		"total": 3.0, "agents.0.name": "forge", "agents.0.format": nil, "agents.1.name": "mine", "agents.1.source": "global",
		"agents.2.name": "reviewer", "agents.2.version": "",
		"agents.2.format": "claude-code", "agents.2.source": "local",
		"agents.2.description": "Reviews code. Use it when: somebody asks",
		"agents.2.path":        filepath.Join(b.settings.Project, ".claude/agents/reviewer.md"),
	})
	if notes := fmt.Sprint(b.ask("agent_list", `{}`)["notes"]); !strings.Contains(notes,
		"empty.md:2:1: description: is missing") {
		t.Errorf("notes: %s", notes)
	}
	b.same("tool_list", `{}`, map[string]any{"total": 0.0})
	b.same("agent_info", `{"name":"reviewer"}`, map[string]any{
		"format": "claude-code", "prompt": "You review code.", "tools": []any{"Read", "Grep", "mcp__claudeops__create_pr"},
		"dependencies": nil,
	})
	b.same("agent_info", `{"name":"mine","source":"global"}`, map[string]any{"tools": []any{"Read"}})
	for _, request := range []string{
		`{"name":"reviewer","strict":true}`, `{"path":".claude/agents/reviewer.md","strict":true}`,
		`{"name":".claude/agents/reviewer.md"}`,
	} {
		b.same("agent_validate", request, map[string]any{"valid": true, "warnings.0.line": 3.0, "warnings.1": nil})
	}
	b.same("agent_validate", `{"path":".claude/agents/empty.md"}`,
		map[string]any{"valid": false, "errors.0.field": "description", "errors.1": nil})
}

func TestAgentsOfClaudeCodeAreHeldAgainstTheirOwnFormat(t *testing.T) {
	for text, want := range map[string][]string{
		"---\nname: a\ndescription: b\ncolor: red\nhooks: {}\n---\nDo.\n": {},
		"---\nname: My Agent\ndescription: b\n---\nDo.\n":                 {`warning 2:7 name: "My Agent" is not a name of small letters, digits and -`},
		"---\nname: a\ndescription: ''\ntools: 3\nmodell: x\n---\n": {
			"3:14 description: is empty", "4:8 tools: is an integer; it must be a string or a list",
			"warning 5:1 modell: is not a known field",
			"warning 7:1 : has no prompt: the text below the header is empty",
		},
		"---\nname: a\ndescription: Use when: x\n  <example>more: y</example>\nmodel: opus\n---\nDo.\n": {
			"warning 3:1 : is no YAML: mapping values are not allowed in this context",
		},
		"---\n- a: b: c\n---\nDo.\n": {"2:1 : is no YAML: mapping values are not allowed in this context"},
		"words\n":                    {"1:1 : has no header: the first line must be ---, and another line of --- must end it"},
	} {
		if diff := cmp.Diff(want, problemsOf(t, Agent, ".claude/agents/a.md", text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	got := strings.Join(problemsOf(t, Agent, ".fractary/agents/a.md", strings.Replace(claudeAgent, "when:", "when", 1)),
		"\n")
	if !strings.Contains(got, "type: is missing") ||
		!strings.Contains(got, "has the fields of Claude Code's own agents, which lie in .claude/agents") {
		t.Errorf("in Forge's folder:\n%s", got)
	}
}
