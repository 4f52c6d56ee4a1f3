package definitions

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// The schemas below are those of Fractary Forge's definitions: which fields there are, and what they hold.

func textShape() *shape    { return &shape{kinds: []yamlKind{kindString}} }
func nonEmptyText() *shape { return &shape{kinds: []yamlKind{kindString}, notEmpty: true} }
func flag() *shape         { return &shape{kinds: []yamlKind{kindBoolean}} }
func anyMapping() *shape   { return &shape{kinds: []yamlKind{kindMapping}} }

func oneOf(values ...string) *shape { return &shape{kinds: []yamlKind{kindString}, oneOf: values} }

func listOf(item *shape) *shape { return &shape{kinds: []yamlKind{kindList}, items: item} }

func mappingOf(fields ...mappingKey) *shape {
	return &shape{kinds: []yamlKind{kindMapping}, fields: fields}
}

func matching(pattern, want string) *shape {
	return &shape{kinds: []yamlKind{kindString}, pattern: regexp.MustCompile(pattern), want: want}
}

func versionShape() *shape {
	return matching(`^\d+\.\d+\.\d+$`, "a version of three numbers, such as 1.2.0")
}

func agentName() *shape {
	return matching(`^[a-zA-Z0-9\-_:]+$`, "a name of letters, digits, - , _ and :")
}

func toolName() *shape { return matching(`^[a-zA-Z0-9\-_]+$`, "a name of letters, digits, - and _") }

func between(low, high float64, kinds ...yamlKind) *shape {
	return &shape{kinds: kinds, min: &low, max: &high}
}

// forkKeys returns the keys by which a definition says what it was forked from; see forks.go.
func forkKeys() []mappingKey {
	return []mappingKey{{"fork_of", false, anyMapping()}, {"fork", false, anyMapping()}}
}

// agentSchema returns the schema of an agent. In Markdown the body is the prompt.
func agentSchema() *shape {
	return mappingOf(append([]mappingKey{
		{"name", true, agentName()},
		{"type", true, oneOf(string(Agent))},
		{"description", true, textShape()},
		{"llm", true, mappingOf(
			mappingKey{"provider", true, oneOf("anthropic", "openai", "google")},
			mappingKey{"model", true, nonEmptyText()},
			mappingKey{"temperature", false, between(0, 1, kindNumber, kindInteger)},
			mappingKey{"max_tokens", false, between(1, 200_000, kindInteger)},
		)},
		{"tools", true, listOf(nonEmptyText())},
		{"version", true, versionShape()},
		{"tags", true, listOf(textShape())},
		{"extends", false, nonEmptyText()},
		{"system_prompt", false, textShape()},
		{"custom_tools", false, listOf(toolSchema())},
		{"caching", false, cachingSchema()},
		{"config", false, anyMapping()},
		{"author", false, textShape()},
		{"license", false, textShape()},
	}, forkKeys()...)...)
}

func cachingSchema() *shape {
	return mappingOf(
		mappingKey{"enabled", true, flag()},
		mappingKey{"cache_sources", false, listOf(mappingOf(
			mappingKey{"type", true, oneOf("file", "glob", "inline", "codex")},
			mappingKey{"label", true, textShape()},
			mappingKey{"path", false, textShape()},
			mappingKey{"pattern", false, textShape()},
			mappingKey{"content", false, textShape()},
			mappingKey{"uri", false, textShape()},
			mappingKey{"ttl", false, between(0, 1e9, kindInteger, kindNumber)},
		))},
	)
}

// toolSchema returns the schema of a tool. In Markdown the body is the extended description.
func toolSchema() *shape {
	return mappingOf(append([]mappingKey{
		{"name", true, toolName()},
		{"type", true, oneOf(string(Tool))},
		{"description", true, textShape()},
		{"parameters", true, &shape{kinds: []yamlKind{kindMapping}, values: parameterSchema(maxParameterDepth)}},
		{"implementation", true, implementationSchema()},
		{"version", true, versionShape()},
		{"tags", true, listOf(textShape())},
		{"extends", false, nonEmptyText()},
		{"extended_description", false, textShape()},
		{"depends_on", false, listOf(nonEmptyText())},
		{"output", false, anyMapping()},
		{"author", false, textShape()},
		{"license", false, textShape()},
	}, forkKeys()...)...)
}

// maxParameterDepth bounds parameters of parameters.
const maxParameterDepth = 20

func parameterTypes() []string {
	return []string{"string", "integer", "number", "boolean", "object", "array"}
}

func parameterSchema(depth int) *shape {
	fields := []mappingKey{
		{"type", true, oneOf(parameterTypes()...)},
		{"required", true, flag()},
		{"description", false, textShape()},
		{"default", false, &shape{}},
		{"enum", false, listOf(&shape{})},
		{"items", false, anyMapping()},
	}
	properties := anyMapping()
	if depth > 0 {
		properties = &shape{kinds: []yamlKind{kindMapping}, pick: func(*value) *shape {
			return &shape{kinds: []yamlKind{kindMapping}, values: parameterSchema(depth - 1)}
		}}
	}
	return mappingOf(append(fields, mappingKey{"properties", false, properties})...)
}

// implementationSchema depends on the implementation's type. What belongs to a type stands beside it, or below a key of
// its name, as Forge's own programs write it: {type: bash, bash: {command: ls}}. The key alone says the type, too.
func implementationSchema() *shape {
	kinds := map[string][]mappingKey{
		"bash":   {{"command", true, nonEmptyText()}, {"sandbox", false, anyMapping()}},
		"python": {{"module", true, nonEmptyText()}, {"function", true, nonEmptyText()}},
		"http": {
			{"method", true, oneOf("GET", "POST", "PUT", "DELETE")}, {"url", true, nonEmptyText()},
			{"headers", false, &shape{kinds: []yamlKind{kindMapping}, values: textShape()}}, {"body_template", false,
				textShape()},
		},
	}
	return &shape{pick: func(v *value) *shape {
		which := mappingKey{"type", true, oneOf("bash", "python", "http")}
		name := v.get("type").string()
		for own := range kinds {
			if v.get("type") == nil && v.get(own) != nil { // the key says the type
				name, which.required = own, false
			}
		}
		fields, known := kinds[name]
		if !known {
			return &shape{kinds: []yamlKind{kindMapping}, fields: []mappingKey{which}}
		}
		if v.get(name) != nil {
			return mappingOf(which, mappingKey{name, true, mappingOf(fields...)})
		}
		return mappingOf(slices.Concat([]mappingKey{which}, fields)...)
	}}
}

// ClaudeCode is the format of Claude Code's own agents: Markdown below .claude/agents whose header has name,
// description, tools and model, and whose text is the prompt. They have no version.
const ClaudeCode Format = "claude-code"

// Format is the format of a definition; "" is Forge's.
type Format string

// claudeFolder has the agents of Claude Code, in a project and in a home.
const claudeFolder = ".claude"

// AgentSkill is the format of skills as agentskills.io has it: a folder of .claude/skills or .agents/skills with a file
// SKILL.md, whose header has name and description. They have no version.
const AgentSkill Format = "agent-skill"

// agentsFolder has the skills that several programs read, in a project and in a home.
const agentsFolder = ".agents"

// inClaudeFolder reports whether a file, by its path, is an agent of Claude Code.
func inClaudeFolder(name string) bool {
	folder := path.Dir(filepath.ToSlash(name))
	return path.Ext(name) == ".md" && path.Base(folder) == Agent.folderName() &&
		path.Base(path.Dir(folder)) == claudeFolder
}

// formatOf returns the format of a file by its path.
func formatOf(kind Kind, name string) Format {
	switch {
	case kind == Skill:
		return AgentSkill
	case kind == Agent && inClaudeFolder(name):
		return ClaudeCode
	}
	return ""
}

// claudeSchema returns the schema of Claude Code's agents.
func claudeSchema() *shape {
	textOrList := &shape{kinds: []yamlKind{kindString, kindList}, items: nonEmptyText()}
	out := mappingOf(
		mappingKey{"name", true, nonEmptyText()},
		mappingKey{"description", true, nonEmptyText()},
		mappingKey{"tools", false, textOrList},
		mappingKey{"disallowedTools", false, textOrList},
		mappingKey{"model", false, nonEmptyText()},
		mappingKey{"system_prompt", false, textShape()}, // the text below the header; see withBody
	)
	for _, more := range []string{
		"background", "color", "effort", "hooks", "initialPrompt", "isolation", "maxTurns", "mcpServers", "memory",
		"permissionMode", "skills",
	} {
		out.fields = append(out.fields, mappingKey{more, false, &shape{}})
	}
	return out
}

// checkClaude adds what the schema cannot say. Claude Code reads such an agent all the same.
func (c *checker) checkClaude(definition *Definition, d document) {
	warn := func(v *value, field, message, suggestion string) {
		c.problems = append(c.problems, Problem{
			Line: v.line, Column: v.column, Field: field, Message: message, Severity: SeverityWarning, Suggestion: suggestion,
		})
	}
	if strings.TrimSpace(definition.Prompt) == "" {
		warn(&value{line: d.bodyLine, column: 1}, "", "has no prompt: the text below the header is empty",
			"write the prompt below the header")
	}
	if strings.Trim(definition.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		warn(d.root.get("name"), "name", fmt.Sprintf("%q is not a name of small letters, digits and -",
			short(definition.Name)), "")
	}
}

// wordsOf returns the items of a list, or of a text that parts them by commas.
func wordsOf(v *value) []string {
	if v == nil || v.kind != kindString {
		return v.strings()
	}
	out := []string{}
	for _, word := range strings.Split(v.text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// leniently reads the header of an agent of Claude Code whose lines are not YAML, such as a description with a colon in
// it: each line is a key and its text. d is the result of the strict reading.
func (d document) leniently(name string, content []byte) document {
	if d.root != nil || len(d.problems) == 0 {
		return d
	}
	f, ok := strictyaml.CutFrontMatter(string(content))
	if !ok {
		return d
	}
	lines, ok := f.Loosely()
	if !ok {
		return d
	}
	root := &value{kind: kindMapping, line: 2, column: 1}
	for _, l := range lines {
		v := &value{kind: kindString, text: l.Text, line: l.Line, column: l.Column}
		root.entries = append(root.entries, mappingEntry{key: l.Key, value: v, line: l.Line, column: 1})
	}
	strict := d.problems[0]
	strict.Severity, strict.Suggestion = SeverityWarning, "put the text in quotes; Claude Code may read it otherwise "+
		"than it is meant"
	d.root, d.problems = root, Problems{strict}
	return d.inFile(name)
}

// looksLikeClaude tells the writer of an agent in Forge's folder, which is one of Claude Code's by its fields, where
// those are read.
func (c *checker) looksLikeClaude(d document) {
	for _, missing := range []string{"type", "llm", "version"} {
		if d.root.get(missing) != nil {
			return
		}
	}
	if !d.markdown || d.root.get("name") == nil || d.root.get("description") == nil {
		return
	}
	c.problems = append(c.problems, Problem{
		Line: d.root.line, Column: d.root.column, Severity: SeverityWarning,
		Message: "has the fields of Claude Code's own agents, which lie in .claude/agents; in this folder an agent is " +
			"one of Forge",
		Suggestion: "move it to .claude/agents, or add type, llm, version and tags",
	})
}
