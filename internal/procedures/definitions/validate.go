package definitions

import "strings"

// Validator holds files against the schemas. Make one with newValidator and keep it: the schemas are compiled once. It
// is safe for concurrent use.
type Validator struct {
	schemas map[Kind]*shape
	claude  *shape // of Claude Code's own agents
}

// newValidator compiles the schemas.
func newValidator() *Validator {
	return &Validator{schemas: map[Kind]*shape{Agent: agentSchema(), Tool: toolSchema()}, claude: claudeSchema()}
}

// Validate reads a file and lists what is wrong with it, unknown fields included. The name's ending says how it is
// read: .md, or YAML for all others. definition is nil if nothing could be read.
func (v *Validator) Validate(kind Kind, name string, content []byte) (definition *Definition, problems Problems) {
	d := parse(name, content)
	if formatOf(kind, name) == ClaudeCode {
		d = d.leniently(name, content)
	}
	definition, problems, unknown := v.validate(kind, d, name)
	return definition, append(problems, unknown...).sorted()
}

// validate is Validate for a parsed file; unknown has the unknown fields.
func (v *Validator) validate(kind Kind, d document, name string) (definition *Definition, problems, unknown Problems) {
	if d.root == nil {
		return nil, d.problems, nil
	}
	d.root = d.withBody(kind)
	definition = readDefinition(kind, d.root)
	c := checker{}
	if definition.Format = formatOf(kind, name); definition.Format == ClaudeCode {
		definition.Tools, definition.Extends = wordsOf(d.root.get("tools")), ""
		c.check(d.root, "", v.claude)
		c.checkClaude(definition, d)
		return definition, append(d.problems, inFile(name, c.problems)...), inFile(name, c.unknown)
	}
	c.check(d.root, "", v.schemas[kind])
	c.checkPrompt(definition, d)
	c.looksLikeClaude(d)
	if at := d.root.get("description"); at != nil && at.kind == kindString && definition.Description == "" {
		c.problems = append(c.problems, Problem{
			Line: at.line, Column: at.column, Field: "description", Message: "is empty", Severity: SeverityWarning,
			Suggestion: "say in a sentence what it is for",
		})
	}
	return definition, append(d.problems, inFile(name, c.problems)...), inFile(name, c.unknown)
}

// checkPrompt demands that a Markdown agent has text below its header; an agent in YAML without a prompt is odd, but
// allowed.
func (c *checker) checkPrompt(definition *Definition, d document) {
	if definition.Kind != Agent || strings.TrimSpace(definition.Prompt) != "" {
		return
	}
	p := Problem{Line: d.root.line, Column: d.root.column, Field: "system_prompt", Severity: SeverityWarning}
	switch {
	case d.markdown:
		p.Line, p.Column, p.Severity = d.bodyLine, 1, SeverityError
		p.Message, p.Suggestion = "is empty: the text below the header is the agent's prompt", "write the prompt below the header"
	case definition.Extends != "":
		return
	default:
		p.Message, p.Suggestion = "is missing: the agent has no prompt", "add system_prompt, or make it a Markdown file "+
			"with the prompt as its text"
	}
	c.problems = append(c.problems, p)
}

func inFile(name string, problems Problems) Problems {
	for i := range problems {
		problems[i].File = name
	}
	return problems
}
