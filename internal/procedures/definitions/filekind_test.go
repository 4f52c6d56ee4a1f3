package definitions

import (
	"strings"
	"testing"
)

func TestOnlySoundDefinitionsMayBeProposed(t *testing.T) {
	kind := FileKind()
	for name, c := range map[string]struct {
		path, content, says string
		line                int
	}{
		"a flat agent":           {".fractary/agents/a.yaml", agentYAML("a", "1.0.0"), "", 0},
		"an agent in its folder": {".fractary/agents/a/agent.md", agentMarkdown("a", "1.0.0", "Do it.\n"), "", 0},
		"a tool":                 {".fractary/tools/t/tool.yml", toolYAML("t", "1.0.0"), "", 0},
		"an unknown field":       {".fractary/agents/a.yaml", agentYAML("a", "1.0.0", "extra: 1"), "", 0},
		"a wrong provider": {".fractary/agents/a.yaml",
			strings.Replace(agentYAML("a", "1.0.0"), "anthropic", "nobody", 1), "llm.provider", 4},
		"no YAML":            {".fractary/agents/a.yaml", "name: a\n\tb", "tab", 2},
		"an agent as a tool": {".fractary/tools/a.yaml", agentYAML("a", "1.0.0"), "parameters", 1},
		"a script":           {".fractary/agents/a/run.sh", "#!/bin/sh\n", "none of the files", 0},
		"a note beside":      {".fractary/agents/a/notes.md", "# x\n", "none of the files", 0},
		"too deep":           {".fractary/agents/a/b/agent.md", agentMarkdown("a", "1.0.0", "x"), "none of the files", 0},
	} {
		problems := kind.Validate(c.path, c.content)
		if c.says == "" {
			if len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
			continue
		}
		if len(problems) == 0 || !strings.Contains(problems[0].Message, c.says) || c.line > 0 &&
			(problems[0].Line != c.line || problems[0].Column < 1) {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

func TestAgentsOfClaudeCodeAreProposedWithoutRights(t *testing.T) {
	kind := ClaudeFileKind()
	const head = "---\nname: a\ndescription: b\ntools: Read, Bash\nmodel: sonnet\n"
	for name, c := range map[string]struct{ content, says string }{
		"sound":              {head + "---\nDo.\n", ""},
		"no prompt":          {head + "---\n", ""},
		"hooks":              {head + "hooks: {Stop: []}\n---\nDo.\n", "hooks: gives the agent more rights"},
		"servers":            {head + "mcpServers: [x]\n---\nDo.\n", "mcpServers: gives"},
		"permissions":        {head + "permissionMode: bypassPermissions\n---\nDo.\n", "permissionMode: gives"},
		"merged keys":        {"---\nname: a\ndescription: b\ncolor: &c {hooks: {}}\n<<: *c\n---\nDo.\n", "hooks: gives"},
		"an unknown field":   {head + "Hooks: {}\n---\nDo.\n", "Hooks: is not a known field"},
		"no description":     {"---\nname: a\n---\nDo.\n", "description: is missing"},
		"no YAML":            {"---\nname: a\ndescription: b: c\n---\nDo.\n", "is no YAML"},
		"two YAML documents": {head + "...\nhooks: {}\n---\nDo.\n", "more than one YAML document"},
		"no header":          {"hooks: {}\n", "has no header"},
	} {
		problems := kind.Validate(".claude/agents/a.md", c.content)
		if c.says == "" && len(problems) > 0 || c.says != "" &&
			(len(problems) == 0 || !strings.Contains(problems[0].Message, c.says)) {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}
