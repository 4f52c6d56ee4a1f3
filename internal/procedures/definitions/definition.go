package definitions

import (
	"slices"
	"strings"
)

// Kind is the kind of a definition.
type Kind string

// The kinds.
const (
	Agent Kind = "agent"
	Tool  Kind = "tool"
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{Agent, Tool} }

// folder returns the kind's folder in a project, a plugin and the global registry.
func (k Kind) folder() string { return string(k) + "s" }

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

	Prompt    string   // an agent's: the Markdown's body or system_prompt
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
	out.entries = slices.DeleteFunc(slices.Clone(out.entries), func(e entry) bool { return e.key == key })
	if body != "" {
		v := &value{kind: kindString, text: body, line: d.bodyLine, column: 1}
		out.entries = append(out.entries, entry{key: key, value: v, line: d.bodyLine, column: 1})
	}
	return &out
}

// parameters returns a tool's JSON Schema of its input.
func (d *Definition) parameters() map[string]any {
	return objectSchema(d.tree.get("parameters"))
}

// output returns a tool's JSON Schema of its output; nil if it says none.
func (d *Definition) output() map[string]any {
	out, _ := d.tree.get("output").plain().(map[string]any)
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
			out[e.key] = e.value.plain()
		}
	}
	return out
}
