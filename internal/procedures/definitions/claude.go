package definitions

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// ClaudeCode is the format of Claude Code's own agents: Markdown below .claude/agents whose header has name,
// description, tools and model, and whose text is the prompt. They have no version.
const ClaudeCode Format = "claude-code"

// Format is the format of a definition; "" is Forge's.
type Format string

// claudeFolder has the agents of Claude Code, in a project and in a home.
const claudeFolder = ".claude"

// inClaudeFolder reports whether a file, by its path, is an agent of Claude Code.
func inClaudeFolder(name string) bool {
	folder := path.Dir(filepath.ToSlash(name))
	return path.Ext(name) == ".md" && path.Base(folder) == Agent.folder() && path.Base(path.Dir(folder)) == claudeFolder
}

// formatOf returns the format of a file by its path.
func formatOf(kind Kind, name string) Format {
	if kind == Agent && inClaudeFolder(name) {
		return ClaudeCode
	}
	return ""
}

// claudeSchema returns the schema of Claude Code's agents.
func claudeSchema() *shape {
	textOrList := &shape{kinds: []kind{kindString, kindList}, items: nonEmptyText()}
	out := mappingOf(
		field{"name", true, nonEmptyText()},
		field{"description", true, nonEmptyText()},
		field{"tools", false, textOrList},
		field{"disallowedTools", false, textOrList},
		field{"model", false, nonEmptyText()},
		field{"system_prompt", false, text()}, // the text below the header; see withBody
	)
	for _, more := range []string{
		"background", "color", "effort", "hooks", "initialPrompt", "isolation", "maxTurns", "mcpServers", "memory",
		"permissionMode", "skills",
	} {
		out.fields = append(out.fields, field{more, false, &shape{}})
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
		root.entries = append(root.entries, entry{key: l.Key, value: v, line: l.Line, column: 1})
	}
	strict := d.problems[0]
	strict.Severity, strict.Suggestion = SeverityWarning, "put the text in quotes; Claude Code may read it otherwise "+
		"than it is meant"
	d.root, d.problems = root, Problems{strict}
	return d.in(name)
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
