package definitions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// Kind is the kind of a definition.
type Kind string

// The kinds.
const (
	Agent Kind = "agent"
	Tool  Kind = "tool"
	Skill Kind = "skill" // which Forge does not have: only this machine has some
)

// Kinds lists those of Forge.
func Kinds() []Kind { return []Kind{Agent, Tool} }

// ShownKinds lists those that people are shown.
func ShownKinds() []Kind { return []Kind{Agent, Tool, Skill} }

// folderName returns the kind's folder in a project, a plugin and the global registry.
func (k Kind) folderName() string { return string(k) + "s" }

// Source says where a definition was found.
type Source string

// The sources, in the order in which a name is resolved.
const (
	Local     Source = "local"     // the project
	Global    Source = "global"    // the user's registry, which all projects share
	Stockyard Source = "stockyard" // a configured registry elsewhere
)

// Sources lists them.
func Sources() []Source { return []Source{Local, Global, Stockyard} }

// Definition is an agent or a tool, as its file says it or, after Catalog.Info, with what it extends.
type Definition struct {
	Kind        Kind
	Format      Format
	Name        string
	Version     string
	Description string
	Author      string
	License     string
	Tags        []string
	Extends     string // the reference of what it extends; "" for nothing

	Prompt    string   // an agent's: the Markdown's body or system_prompt; a skill's text
	Tools     []string // an agent's: references
	DependsOn []string // a tool's: references

	tree *value // every field of the file
}

// readDefinition takes the known fields from a tree, whatever is wrong with the rest.
func readDefinition(kind Kind, v *value) *Definition {
	return &Definition{
		Kind: kind, Name: v.get("name").string(), Version: v.get("version").string(),
		Description: v.get("description").string(),
		Author:      v.get("author").string(), License: v.get("license").string(), Tags: v.get("tags").strings(),
		Extends: v.get("extends").string(),
		Prompt:  v.get("system_prompt").string(), Tools: v.get("tools").strings(), DependsOn: v.get("depends_on").strings(),
		tree: v,
	}
}

// withBody returns the tree with the text below a Markdown file's header: an agent's prompt, which wins over one in the
// header, or a tool's extended description.
func (d document) withBody(kind Kind) *value {
	body := strings.TrimSpace(d.body)
	if !d.markdown || d.root == nil || body == "" && kind == Tool {
		return d.root
	}
	key := "system_prompt"
	if kind == Tool {
		key = "extended_description"
	}
	out := *d.root
	out.entries = slices.DeleteFunc(slices.Clone(out.entries), func(e mappingEntry) bool { return e.key == key })
	if body != "" {
		v := &value{kind: kindString, text: body, line: d.bodyLine, column: 1}
		out.entries = append(out.entries, mappingEntry{key: key, value: v, line: d.bodyLine, column: 1})
	}
	return &out
}

// parameters returns a tool's JSON Schema of its input.
func (d *Definition) parameters() map[string]any {
	return objectSchema(d.tree.get("parameters"))
}

// output returns a tool's JSON Schema of its output; nil if it says none.
func (d *Definition) output() map[string]any {
	out, _ := d.tree.get("output").jsonValue().(map[string]any)
	return out
}

// objectSchema returns the JSON Schema of named parameters.
func objectSchema(parameters *value) map[string]any {
	properties, required := map[string]any{}, []string{}
	if parameters != nil {
		for _, e := range parameters.entries {
			properties[e.key] = parameterJSONSchema(e.value)
			if r := e.value.get("required"); r != nil && r.kind == kindBoolean && r.text == "true" {
				required = append(required, e.key)
			}
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func parameterJSONSchema(p *value) map[string]any {
	out := map[string]any{}
	for _, e := range p.entries {
		switch e.key {
		case "required":
		case "properties":
			nested := objectSchema(e.value)
			out["properties"], out["required"] = nested["properties"], nested["required"]
		default:
			out[e.key] = e.value.jsonValue()
		}
	}
	return out
}

// maxFileBytes bounds a file with a definition.
const maxFileBytes = 1 << 20

// document is a parsed file: the tree of its YAML and, of Markdown, the text below the header.
type document struct {
	root     *value
	markdown bool
	body     string
	bodyLine int // the body's first line in the file
	problems Problems
}

// parseDefinition reads a file by the ending of its name: .md has a header of YAML between lines of three hyphens. What
// cannot be read at all leaves root nil and says why in problems.
func parseDefinition(name string, content []byte) document {
	d := document{markdown: path.Ext(name) == ".md"}
	if problem, bad := unreadable(content); bad {
		d.problems = Problems{problem}
		return d.inFile(name)
	}
	text, before := content, 0
	if d.markdown {
		f, ok := strictyaml.CutFrontMatter(string(content))
		if text, d.body, d.bodyLine = []byte(f.Header), f.Body, f.BodyLine; !ok {
			d.problems = Problems{{
				Line: 1, Column: 1, Severity: SeverityError,
				Message:    "has no header: the first line must be ---, and another line of --- must end it",
				Suggestion: "begin the file with ---, the fields in YAML, and ---",
			}}
			return d.inFile(name)
		}
		before = 1
	}
	d.parseYAML(text, before)
	return d.inFile(name)
}

func (d document) inFile(file string) document {
	for i := range d.problems {
		d.problems[i].File = file
	}
	return d
}

// unreadable says why a file is not text.
func unreadable(content []byte) (Problem, bool) {
	p := Problem{Line: 1, Column: 1, Severity: SeverityError}
	var at int
	switch {
	case len(content) > maxFileBytes:
		p.Line, p.Column = 0, 0
		p.Message = fmt.Sprintf("has %d bytes; at most %d are read", len(content), maxFileBytes)
		return p, true
	case !utf8.Valid(content):
		for at = 0; at < len(content); {
			r, size := utf8.DecodeRune(content[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		p.Message, p.Suggestion = "is not valid UTF-8", "save the file as UTF-8"
	case bytes.IndexByte(content, 0) >= 0:
		at = bytes.IndexByte(content, 0)
		p.Message = "holds a NUL byte"
	default:
		return p, false
	}
	lines := bytes.Split(content[:at], []byte("\n"))
	p.Line, p.Column = len(lines), utf8.RuneCount(lines[len(lines)-1])+1
	return p, true
}

// parseYAML parses one YAML document, which must be a mapping.
func (d *document) parseYAML(text []byte, before int) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node, more yaml.Node
	err := decoder.Decode(&node)
	if err == nil {
		if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
			d.problems = append(d.problems, Problem{
				Line: max(more.Line, 1) + before, Column: 1, Severity: SeverityError, Message: "holds more than one YAML document",
				Suggestion: "give each definition a file of its own",
			})
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		d.problems = append(d.problems, Problem{Line: 1 + before, Column: 1, Severity: SeverityError, Message: "is empty"})
		return
	case err != nil:
		d.problems = append(d.problems, syntaxProblem(err, text, before))
		return
	}
	c := converter{lineOffset: before}
	d.root = c.convert(node.Content[0], "", 0)
	d.problems = append(d.problems, c.problems...)
	if d.root != nil && d.root.kind != kindMapping {
		d.problems = append(d.problems, Problem{
			Line: d.root.line, Column: d.root.column, Severity: SeverityError,
			Message:    fmt.Sprintf("is %s; fields are needed", d.root.kind),
			Suggestion: "write one field a line, such as name: my-agent",
		})
		d.root = nil
	}
}

// notYAML begins the problem of a text that YAML does not take.
const notYAML = "is not YAML: "

// syntaxProblem returns a problem for an error of the YAML parser, which names the line in its text alone.
func syntaxProblem(err error, text []byte, before int) Problem {
	p := Problem{Line: 1 + before, Column: 1, Severity: SeverityError,
		Message: notYAML + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := regexp.MustCompile(`line (\d+): (.*)`).FindStringSubmatch(err.Error()); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			p.Line, p.Message = line+before, notYAML+m[2]
			lines := strings.Split(string(text), "\n")
			if line <= len(lines) {
				p.Column = 1 + len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " "))
			}
		}
	}
	if strings.Contains(err.Error(), "cannot start any token") || bytes.Contains(text, []byte("\n\t")) {
		p.Suggestion = "indent with spaces; YAML takes no tabs"
	}
	return p
}

// Bounds of a file's tree of values. Aliases count as often as they are used, so that a few lines cannot explode.
const (
	maxValues = 100_000
	maxDepth  = 100
)

// yamlKind is the kind of a YAML value.
type yamlKind string

const (
	kindNull    yamlKind = "null"
	kindString  yamlKind = "a string"
	kindInteger yamlKind = "an integer"
	kindNumber  yamlKind = "a number"
	kindBoolean yamlKind = "true or false"
	kindList    yamlKind = "a list"
	kindMapping yamlKind = "a mapping"
)

// value is a value of YAML with its place in the file.
type value struct {
	kind         yamlKind
	text         string // of a scalar, as YAML understands it
	items        []*value
	entries      []mappingEntry // of a mapping, in the order of the file
	line, column int
}

// mappingEntry is one key of a mapping.
type mappingEntry struct {
	key          string
	value        *value
	line, column int // of the key
	merged       bool
}

// get returns the value of a key; nil if there is none.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for _, e := range v.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// string returns the text of a string; "" for anything else.
func (v *value) string() string {
	if v == nil || v.kind != kindString {
		return ""
	}
	return v.text
}

// strings returns the strings of a list.
func (v *value) strings() []string {
	out := []string{}
	if v == nil {
		return out
	}
	for _, item := range v.items {
		if item.kind == kindString {
			out = append(out, item.text)
		}
	}
	return out
}

// jsonValue returns the value as encoding/json has it. Whole numbers stay whole.
func (v *value) jsonValue() any {
	switch {
	case v == nil || v.kind == kindNull:
		return nil
	case v.kind == kindList:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = item.jsonValue()
		}
		return out
	case v.kind == kindMapping:
		out := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			out[e.key] = e.value.jsonValue()
		}
		return out
	case v.kind == kindBoolean:
		return v.text == "true"
	case v.kind == kindInteger:
		if n, err := strconv.ParseInt(v.text, 0, 64); err == nil {
			return n
		}
		return v.text
	case v.kind == kindNumber:
		if f, err := strconv.ParseFloat(v.text, 64); err == nil {
			return f
		}
		return v.text
	}
	return v.text
}

// converter makes values of YAML's nodes.
type converter struct {
	lineOffset int // lines of the file before the YAML text
	values     int
	problems   Problems
	over       bool // a bound was passed: nothing more is read
}

func (c *converter) problem(n *yaml.Node, field, message, suggestion string) {
	c.problems = append(c.problems, Problem{
		Line: n.Line + c.lineOffset, Column: n.Column, Field: field, Message: message, Severity: SeverityError,
		Suggestion: suggestion,
	})
}

// convert makes a value of a node; nil once a bound was passed.
func (c *converter) convert(n *yaml.Node, field string, depth int) *value {
	c.values++
	if c.over || c.values > maxValues || depth > maxDepth {
		if !c.over {
			c.over = true
			c.problem(n, field, fmt.Sprintf("has more than %d values or %d levels, its aliases written out", maxValues,
				maxDepth),
				"write it without aliases of aliases")
		}
		return nil
	}
	v := &value{line: n.Line + c.lineOffset, column: n.Column}
	switch n.Kind {
	case yaml.AliasNode:
		aliased := c.convert(n.Alias, field, depth+1)
		if aliased != nil {
			aliased.line, aliased.column = v.line, v.column
		}
		return aliased
	case yaml.SequenceNode:
		v.kind = kindList
		for i, item := range n.Content {
			if made := c.convert(item, join(field, strconv.Itoa(i)), depth+1); made != nil {
				v.items = append(v.items, made)
			}
		}
	case yaml.MappingNode:
		v.kind = kindMapping
		c.mapping(v, n, field, depth)
	default:
		v.kind, v.text = scalar(n)
	}
	return v
}

// mapping reads keys and values. A key of the mapping itself wins over one that `<<` merges in.
func (c *converter) mapping(v *value, n *yaml.Node, field string, depth int) {
	for i := 0; i+1 < len(n.Content) && !c.over; i += 2 {
		key, content := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			c.problem(key, field, "has a key that is not a scalar", "use a word as the key")
			continue
		}
		made := c.convert(content, join(field, key.Value), depth+1)
		if made == nil {
			continue
		}
		if key.Tag == "!!merge" {
			c.mergeKey(v, made, key, field)
			continue
		}
		at := mappingEntry{key: key.Value, value: made, line: key.Line + c.lineOffset, column: key.Column}
		c.addEntry(v, at, key, field)
	}
}

func (c *converter) addEntry(v *value, e mappingEntry, key *yaml.Node, field string) {
	for i, known := range v.entries {
		if known.key != e.key {
			continue
		}
		if known.merged {
			v.entries[i] = e
		} else if !e.merged {
			c.problem(key, join(field, e.key), fmt.Sprintf("the key is given twice; first in line %d", known.line),
				"remove one of them")
		}
		return
	}
	v.entries = append(v.entries, e)
}

func (c *converter) mergeKey(v, from *value, key *yaml.Node, field string) {
	sources := []*value{from}
	if from.kind == kindList {
		sources = from.items
	}
	for _, source := range sources {
		if source.kind != kindMapping {
			c.problem(key, field, "`<<` merges something that is not a mapping", "")
			continue
		}
		for _, e := range source.entries {
			e.merged = true
			c.addEntry(v, e, key, field)
		}
	}
}

func scalar(n *yaml.Node) (yamlKind, string) {
	switch n.ShortTag() {
	case "!!null":
		return kindNull, ""
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err == nil {
			return kindBoolean, strconv.FormatBool(b)
		}
	case "!!int":
		var i int64
		if err := n.Decode(&i); err == nil {
			return kindInteger, strconv.FormatInt(i, 10)
		}
	case "!!float":
		var f float64
		if err := n.Decode(&f); err == nil {
			return kindNumber, strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
	return kindString, n.Value
}

// join returns the name of a field below another.
func join(field, key string) string { return strings.TrimPrefix(field+"."+key, ".") }
