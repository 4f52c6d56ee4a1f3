package definitions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func problemsOf(t *testing.T, kind Kind, name, content string) []string {
	t.Helper()
	_, problems := newValidator().Validate(kind, name, []byte(content))
	out := []string{}
	for _, p := range problems {
		mark := ""
		if p.Severity == SeverityWarning {
			mark = "warning "
		}
		out = append(out, fmt.Sprintf("%s%d:%d %s: %s", mark, p.Line, p.Column, p.Field, p.Message))
	}
	return out
}

func TestSoundDefinitionsHaveNoProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    Kind
		file    string
		content string
	}{
		"agent":             {Agent, "a.yaml", agentYAML("a", "1.0.0")},
		"agent in Markdown": {Agent, "a.md", agentMarkdown("a", "1.0.0", "Prompt.\n")},
		"Windows line ends": {Agent, "a.md", strings.ReplaceAll(agentMarkdown("a", "1.0.0", "Prompt.\n"), "\n", "\r\n")},
		"byte order mark":   {Agent, "a.md", "\ufeff" + agentMarkdown("a", "1.0.0", "Prompt.\n")},
		"every field": {Agent, "a.yaml", agentYAML("org:a-b_c", "10.20.30", "extends: base@^1.0.0", "author: Ann",
			"license: MIT", "config: {any: [thing]}",
			"caching: {enabled: true, cache_sources: [{type: file, label: l, path: p, ttl: 60}]}",
			"custom_tools: [{name: t, type: tool, description: d, parameters: {}, implementation: {type: bash, command: ls}, "+
				"version: 1.0.0, tags: []}]",
			"fork_of: {name: base, version: 1.0.0}")},
		"tool": {Tool, "t.yaml", toolYAML("t", "1.0.0")},
		"python": {Tool, "t.yaml", strings.Replace(toolYAML("t", "1.0.0"), "{type: bash, command: echo hello}",
			"{type: python, module: m, function: f}", 1)},
		"http": {Tool, "t.yaml", strings.Replace(toolYAML("t", "1.0.0", "output: {type: object}", "depends_on: [other]"),
			"{type: bash, command: echo hello}",
			`{type: http, method: POST, url: "https://example.org", headers: {A: b}, body_template: x}`, 1)},
		"nested parameters": {Tool, "t.yaml", strings.Replace(toolYAML("t", "1.0.0"),
			"{text: {type: string, required: true, description: what to print}}",
			"{o: {type: object, required: false, properties: {p: {type: array, required: true, default: [], enum: [[]]}}}}", 1)},
		"a key for the type": {Tool, "t.yaml", strings.Replace(toolYAML("t", "1.0.0"), "{type: bash, command: echo hello}",
			"{bash: {command: ls}}", 1)},
		"tool in Markdown": {Tool, "t.md", "---\n" + toolYAML("t", "1.0.0") + "---\n"},
		"an anchor and a merge": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"),
				"parameters: {text: {type: string, required: true, description: what to print}}",
				"parameters:\n  a: &p {type: string, required: true}\n  b: {<<: *p, required: false}", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemsOf(t, c.kind, c.file, c.content); len(got) > 0 {
				t.Errorf("problems: %s", strings.Join(got, "\n"))
			}
		})
	}
}

func TestProblemsNameTheirPlace(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i <= 'h'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 10), ","))
	}
	for name, c := range map[string]struct {
		kind    Kind
		file    string
		content string
		want    []string
	}{
		"no YAML": {Agent, "a.yaml", "name: [\n", []string{"1:1 : is not YAML: did not find expected node content"}},
		"a tab": {Agent, "a.yaml", "name: a\nllm:\n\tprovider: x\n",
			[]string{"3:1 : is not YAML: found character that cannot start any token"}},
		"empty":    {Agent, "a.yaml", "# nothing\n", []string{"1:1 : is empty"}},
		"a list":   {Agent, "a.yaml", "- a\n", []string{"1:1 : is a list; fields are needed"}},
		"a NUL":    {Agent, "a.yaml", "name: a\nx: \x00\n", []string{"2:4 : holds a NUL byte"}},
		"no UTF-8": {Agent, "a.md", agentMarkdown("a", "1.0.0", "ab\xffcd"), []string{"11:3 : is not valid UTF-8"}},
		"no header": {Agent, "a.md", "# Hello\n",
			[]string{"1:1 : has no header: the first line must be ---, and another line of --- must end it"}},
		"an open header": {Agent, "a.md", "---\nname: a\n",
			[]string{"1:1 : has no header: the first line must be ---, and another line of --- must end it"}},
		"two documents": {Tool, "t.yaml", toolYAML("t", "1.0.0") + "---\na: b\n",
			[]string{"9:1 : holds more than one YAML document"}},
		"a key twice": {Tool, "t.yaml", toolYAML("t", "1.0.0", "author: a", "author: b"),
			[]string{"9:1 author: the key is given twice; first in line 8"}},
		"an empty prompt": {Agent, "a.md", agentMarkdown("a", "1.0.0", " \n"),
			[]string{"11:1 system_prompt: is empty: the text below the header is the agent's prompt"}},
		"aliases explode": {Agent, "a.yaml", bomb, nil},
		"an unknown field": {Tool, "t.yaml", toolYAML("t", "1.0.0", "maker: a"),
			[]string{"warning 8:1 maker: is not a known field"}},
		"wrong values": {Agent, "a.yaml",
			"name: a b\ntype: tool\ndescription: 5\nllm: {provider: aws, model: m, temperature: 2, max_tokens: 0.5}\ntools: " +
				"no\nversion: 1.0\ntags: [1]\n", []string{
				"warning 1:1 system_prompt: is missing: the agent has no prompt",
				"1:7 name: \"a b\" is not a name of letters, digits, - , _ and :",
				"2:7 type: \"tool\" is not one of agent",
				"3:14 description: is an integer; it must be a string",
				"4:17 llm.provider: \"aws\" is not one of anthropic, openai, google",
				"4:45 llm.temperature: is 2; at most 1",
				"4:60 llm.max_tokens: is a number; it must be an integer",
				"5:8 tools: is a string; it must be a list",
				"6:10 version: is a number; it must be a string",
				"7:8 tags.0: is an integer; it must be a string",
			}},
		"a Markdown header counts its lines from the file's": {Agent, "a.md",
			strings.Replace(agentMarkdown("a", "1.0.0", "Prompt.\n"), "1.0.0", "one", 1), []string{
				"7:10 version: \"one\" is not a version of three numbers, such as 1.2.0",
			}},
		"a bash tool needs a command": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"), ", command: echo hello", "", 1),
			[]string{"5:17 implementation.command: is missing"}},
		"a bash tool as Forge's programs write it": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"), "command: echo hello", "bash: {command: ls, sandbox: {enabled: true}}", 1),
			[]string{}},
		"a bash tool in that form without a command": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"), "command: echo hello", "bash: {}", 1),
			[]string{"5:36 implementation.bash.command: is missing"}},
		"a bash tool in both forms": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"), "command: echo hello", "command: x, bash: {command: ls}", 1),
			[]string{"warning 5:30 implementation.command: is not a known field"}},
		"a bash tool whose bash is a text": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"), "command: echo hello", "bash: ls", 1),
			[]string{"5:36 implementation.bash: is a string; it must be a mapping"}},
		"an unknown implementation": {Tool, "t.yaml",
			strings.Replace(toolYAML("t", "1.0.0"), "type: bash", "type: perl", 1),
			[]string{"5:24 implementation.type: \"perl\" is not one of bash, python, http",
				"warning 5:30 implementation.command: is not a known field"}},
		"a parameter without required": {Tool, "t.yaml", strings.Replace(toolYAML("t", "1.0.0"), "required: true, ", "", 1),
			[]string{
				"4:20 parameters.text.required: is missing",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemsOf(t, c.kind, c.file, c.content)
			if name == "aliases explode" {
				if len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), "its aliases written out") {
					t.Errorf("got %v", got)
				}
				return
			}
			operationtest.Same(t, "problems", c.want, got)
		})
	}
}

func TestTooLargeIsAProblem(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, Agent, "a.yaml", agentYAML("a", "1.0.0", "# "+strings.Repeat("x", maxFileBytes)))
	if len(got) != 1 || !strings.Contains(got[0], "at most 1048576 are read") {
		t.Errorf("got %v", got)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("a.yaml", agentYAML("a", "1.0.0"))
	f.Add("a.md", agentMarkdown("a", "1.0.0", "Prompt.\n", "x: &a [*a]"))
	f.Add("t.yaml", toolYAML("t", "1.0.0", "<<: {a: b}", "y: !!binary x"))
	v := newValidator()
	f.Fuzz(func(t *testing.T, name, content string) {
		for _, kind := range Kinds() {
			definition, problems := v.Validate(kind, name, []byte(content))
			if definition == nil && len(problems.Errors()) == 0 {
				t.Error("nothing was read, and nothing is wrong")
			}
			if definition != nil {
				_ = definition.tree.jsonValue()
				_ = definition.parameters()
			}
		}
	})
}

func TestOnlySoundDefinitionsMayBeProposed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, content, says string
		line, column        int
	}{
		"a flat agent":           {".fractary/agents/a.yaml", agentYAML("a", "1.0.0"), "", 0, 0},
		"an agent in its folder": {".fractary/agents/a/agent.md", agentMarkdown("a", "1.0.0", "Do it.\n"), "", 0, 0},
		"a tool":                 {".fractary/tools/t/tool.yml", toolYAML("t", "1.0.0"), "", 0, 0},
		"an unknown field":       {".fractary/agents/a.yaml", agentYAML("a", "1.0.0", "extra: 1"), "", 0, 0},
		"a wrong provider": {".fractary/agents/a.yaml",
			strings.Replace(agentYAML("a", "1.0.0"), "anthropic", "nobody", 1), "llm.provider", 4, 17},
		"no YAML":            {".fractary/agents/a.yaml", "name: a\n\tb", "tab", 2, 1},
		"an agent as a tool": {".fractary/tools/a.yaml", agentYAML("a", "1.0.0"), "parameters", 1, 1},
		"a script":           {".fractary/agents/a/run.sh", "#!/bin/sh\n", "none of the files", 0, 0},
		"a note beside":      {".fractary/agents/a/notes.md", "# x\n", "none of the files", 0, 0},
		"too deep":           {".fractary/agents/a/b/agent.md", agentMarkdown("a", "1.0.0", "x"), "none of the files", 0, 0},
	} {
		operationtest.Judged(t, name, FileKind().Validate(c.path, "", c.content), c.says, c.line, c.column)
	}
}

func TestAgentsOfClaudeCodeAreProposedWithoutRights(t *testing.T) {
	t.Parallel()
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
		"no YAML":            {"---\nname: a\ndescription: b: c\n---\nDo.\n", "is not YAML"},
		"two YAML documents": {head + "...\nhooks: {}\n---\nDo.\n", "more than one YAML document"},
		"no header":          {"hooks: {}\n", "has no header"},
	} {
		problems := kind.Validate(".claude/agents/a.md", "", c.content)
		if c.says == "" && len(problems) > 0 || c.says != "" &&
			(len(problems) == 0 || !strings.Contains(problems[0].Message, c.says)) {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}
