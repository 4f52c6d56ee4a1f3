package definitions

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agnivade/levenshtein"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
	d := parseDefinition(name, content)
	if formatOf(kind, name) != "" {
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
	c := checker{}
	if kind == Skill {
		definition = readDefinition(kind, d.root)
		definition.Format, definition.Prompt, definition.Extends = AgentSkill, d.body, ""
		definition.Tools = wordsOf(d.root.get("allowed-tools"))
		c.checkSkill(d.root, path.Base(path.Dir(filepath.ToSlash(name))))
		return definition, append(d.problems, inFile(name, c.problems)...), nil
	}
	d.root = d.withBody(kind)
	definition = readDefinition(kind, d.root)
	if definition.Format = formatOf(kind, name); definition.Format == ClaudeCode {
		definition.Tools, definition.Extends = wordsOf(d.root.get("tools")), ""
		c.checkValue(d.root, "", v.claude)
		c.checkClaude(definition, d)
		return definition, append(d.problems, inFile(name, c.problems)...), inFile(name, c.unknown)
	}
	c.checkValue(d.root, "", v.schemas[kind])
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

// Severity says whether a problem keeps a definition from being used.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem describes an error at one place of a file.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1; 0 where no line is to blame
	Column int    `json:"column,omitempty"` // from 1, in characters
	// keys and indexes joined with dots, such as llm.model; "" for the whole file
	Field      string   `json:"field"`
	Message    string   `json:"message"`
	Severity   Severity `json:"severity"`
	Suggestion string   `json:"suggestion,omitempty"`
}

// String returns the problem as a compiler would print it.
func (p Problem) String() string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
	case p.File != "":
		return p.File + ": " + text
	}
	return text
}

// Problems are the problems of one file.
type Problems []Problem

// Errors returns the problems of severity error.
func (ps Problems) Errors() Problems { return ps.bySeverity(SeverityError) }

// Warnings returns the problems of severity warning.
func (ps Problems) Warnings() Problems { return ps.bySeverity(SeverityWarning) }

func (ps Problems) bySeverity(s Severity) Problems {
	out := Problems{}
	for _, p := range ps {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// sorted orders problems by their place.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}

// shape is a schema's constraint on a value. The zero value accepts anything.
type shape struct {
	kinds    []yamlKind // one of them; none: any
	pattern  *regexp.Regexp
	want     string   // the pattern in words, with an example
	oneOf    []string // a string's values
	min, max *float64 // of a number
	notEmpty bool

	items  *shape              // of a list
	fields []mappingKey        // of a mapping; nil: any keys
	values *shape              // of a mapping whose keys are names
	pick   func(*value) *shape // a shape that depends on the value, such as on its key `type`
}

// mappingKey is one key of a mapping.
type mappingKey struct {
	name     string
	required bool
	shape    *shape
}

// unknownField is the message about a key that no schema has.
const unknownField = "is not a known field"

// checker holds values against shapes.
type checker struct {
	problems Problems
	unknown  Problems // keys that no shape knows: warnings of the strict validation
}

func (c *checker) fail(v *value, field, suggestion, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		Line: v.line, Column: v.column, Field: field, Message: fmt.Sprintf(format, args...), Severity: SeverityError,
		Suggestion: suggestion,
	})
}

// checkValue holds a value against a shape and lists every difference.
func (c *checker) checkValue(v *value, at string, s *shape) {
	if s == nil {
		return
	}
	if s.pick != nil {
		s = s.pick(v)
	}
	if len(s.kinds) > 0 && !slices.Contains(s.kinds, v.kind) {
		suggestion := ""
		if s.kinds[0] == kindString && v.text != "" {
			suggestion = fmt.Sprintf("put it in quotes: %q", v.text)
		}
		c.fail(v, at, suggestion, "is %s; it must be %s", v.kind, kindNames(s.kinds))
		return
	}
	switch v.kind {
	case kindString:
		c.checkString(v, at, s)
	case kindInteger, kindNumber:
		c.checkNumber(v, at, s)
	case kindList:
		for i, item := range v.items {
			c.checkValue(item, join(at, strconv.Itoa(i)), s.items)
		}
	case kindMapping:
		c.checkMapping(v, at, s)
	}
}

func (c *checker) checkString(v *value, at string, s *shape) {
	switch {
	case s.notEmpty && strings.TrimSpace(v.text) == "":
		c.fail(v, at, "", "is empty")
	case s.pattern != nil && !s.pattern.MatchString(v.text):
		c.fail(v, at, "", "%q is not %s", short(v.text), s.want)
	case len(s.oneOf) > 0 && !slices.Contains(s.oneOf, v.text):
		c.fail(v, at, "", "%q is not one of %s", short(v.text), strings.Join(s.oneOf, ", "))
	}
}

func (c *checker) checkNumber(v *value, at string, s *shape) {
	n, err := strconv.ParseFloat(v.text, 64)
	switch {
	case err != nil:
	case s.min != nil && n < *s.min:
		c.fail(v, at, "", "is %s; at least %g", v.text, *s.min)
	case s.max != nil && n > *s.max:
		c.fail(v, at, "", "is %s; at most %g", v.text, *s.max)
	}
}

func (c *checker) checkMapping(v *value, at string, s *shape) {
	if s.values != nil {
		for _, e := range v.entries {
			c.checkValue(e.value, join(at, e.key), s.values)
		}
		return
	}
	if s.fields == nil {
		return
	}
	for _, f := range s.fields {
		given := v.get(f.name)
		switch {
		case given == nil && f.required:
			c.fail(v, join(at, f.name), "add `"+f.name+": ...`", "is missing")
		case given == nil || given.kind == kindNull && !f.required:
		default:
			c.checkValue(given, join(at, f.name), f.shape)
		}
	}
	for _, e := range v.entries {
		if !slices.ContainsFunc(s.fields, func(f mappingKey) bool { return f.name == e.key }) {
			c.unknown = append(c.unknown, Problem{
				Line: e.line, Column: e.column, Field: join(at, e.key), Message: unknownField, Severity: SeverityWarning,
				Suggestion: nearest(e.key, s.fields),
			})
		}
	}
}

func kindNames(kinds []yamlKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, " or ")
}

// short returns the text as a message quotes it.
func short(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "..."
	}
	return text
}

// nearest suggests the known field that differs least from a key.
func nearest(key string, fields []mappingKey) string {
	best, least := "", 3
	for _, f := range fields {
		if d := levenshtein.ComputeDistance(strings.ToLower(key), f.name); d < least {
			best, least = f.name, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean `" + best + "`?"
}

// FileKind returns the definitions of a project as files that may be proposed, if they are sound.
func FileKind() gitprovider.FileKind {
	validator := sync.OnceValue(newValidator)
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{".fractary/agents/**", ".fractary/tools/**"},
		Validate: func(name, _, content string) []gitprovider.FileProblem { return soundFile(validator(), name, content) },
	}
}

// ClaudeFileKind is Claude Code's own agents as files that may be proposed, if they are sound and take no rights: what
// runs programs, opens servers or lowers the permissions of a session is for a person to write.
func ClaudeFileKind() gitprovider.FileKind {
	validator := sync.OnceValue(newValidator)
	return gitprovider.FileKind{
		Name: "claude-agents", Patterns: []string{claudeFolder + "/agents/*.md"}, Lifts: []string{claudeFolder + "/**"},
		Validate: func(name, _, content string) []gitprovider.FileProblem {
			definition, problems := validator().Validate(Agent, name, []byte(content))
			var out []gitprovider.FileProblem
			for _, p := range problems {
				switch {
				case p.Severity == SeverityError || p.Message == unknownField:
				case p.Field == "" && strings.HasPrefix(p.Message, notYAML): // which Claude Code may read in its own way
				default:
					continue
				}
				out = append(out, fileProblem(p))
			}
			for _, right := range []string{"hooks", "mcpServers", "permissionMode"} {
				if definition != nil && definition.tree.get(right) != nil {
					at := definition.tree.get(right)
					out = append(out, gitprovider.FileProblem{
						Line: at.line, Column: at.column, Message: right + ": gives the agent more rights, which only a person may",
						Suggestion: "leave " + right + " out, and ask a person to add it",
					})
				}
			}
			return out
		},
	}
}

// soundFile lists the problems of a file that would be proposed: one that is not a definition, too.
func soundFile(v *Validator, name, content string) (out []gitprovider.FileProblem) {
	kind, ok := kindOfPath(name)
	if !ok {
		return []gitprovider.FileProblem{{
			Message: "it is none of the files that a definition has",
			Suggestion: "name it .fractary/agents/NAME/agent.md or .fractary/agents/NAME.md, for a tool " +
				".fractary/tools/NAME/tool.md or .fractary/tools/NAME.md, or .yaml or .yml instead of .md",
		}}
	}
	_, problems := v.Validate(kind, name, []byte(content))
	for _, p := range problems.Errors() {
		out = append(out, fileProblem(p))
	}
	return out
}

func fileProblem(p Problem) gitprovider.FileProblem {
	message := p.Message
	if p.Field != "" {
		message = fmt.Sprintf("%s: %s", p.Field, message)
	}
	return gitprovider.FileProblem{Line: p.Line, Column: p.Column, Message: message, Suggestion: p.Suggestion}
}

// kindOfPath returns the kind of the definition that a project's file holds.
func kindOfPath(name string) (Kind, bool) {
	parts := strings.Split(name, "/")
	for _, kind := range Kinds() {
		ext := path.Ext(name)
		if len(parts) < 3 || parts[0] != ".fractary" || parts[1] != kind.folderName() || !knownExtension(ext) {
			continue
		}
		flat, own := len(parts) == 3, len(parts) == 4 && parts[3] == string(kind)+ext
		if flat || own {
			return kind, true
		}
	}
	return "", false
}
