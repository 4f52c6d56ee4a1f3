package definitions

import (
	"cmp"
	"context"
	"path"

	"github.com/claudeops/claudeops/internal/operation"
)

// defaultPage is the default number of definitions in a list.
const defaultPage = 100

// ListRequest selects definitions.
type ListRequest struct {
	Tags   []string `json:"tags,omitempty" maxItems:"50" doc:"Only those with one of these tags"`
	Source string   `json:"source,omitempty" enum:"local,global,stockyard,all" default:"all" doc:"local: the project; global: the user's registry; stockyard: configured registries"`
	Limit  int      `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"100" doc:"Entries at most"`
	Offset int      `json:"offset,omitempty" minimum:"0" default:"0" doc:"Entries to skip"`
}

// Entry is a definition in a list.
type Entry struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Source      Source   `json:"source" enum:"local,global,stockyard"`
	Path        string   `json:"path"`
	Registry    string   `json:"registry,omitempty" doc:"The registry that it comes from"`
	format      Format
}

// AgentEntry is an agent in a list.
type AgentEntry struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Source      Source   `json:"source" enum:"local,global,stockyard"`
	Path        string   `json:"path"`
	Registry    string   `json:"registry,omitempty" doc:"The registry that it comes from"`
	Format      Format   `json:"format,omitempty" enum:"claude-code" doc:"claude-code for one of Claude Code's own agents, which have no version"`
}

// AgentList is a page of agents.
type AgentList struct {
	Agents []AgentEntry `json:"agents"`
	Total  int          `json:"total"`
	Limit  int          `json:"limit"`
	Offset int          `json:"offset"`
	Notes  []string     `json:"notes,omitempty" doc:"What could not be read or was left out"`
}

// ToolList is a page of tools.
type ToolList struct {
	Tools  []Entry  `json:"tools"`
	Total  int      `json:"total"`
	Limit  int      `json:"limit"`
	Offset int      `json:"offset"`
	Notes  []string `json:"notes,omitempty" doc:"What could not be read or was left out"`
}

const listDescription = " of the project, of the user's registry and of configured registries, by name, each with " +
	"version, tags, source and path, and the registry that it comes from. Of registries that have the same name, the " +
	"preferred one's is listed. total counts all that " +
	"match; page with limit and offset. notes names files that are broken and registries that did not answer; they are left out."

func (s toolDeps) agentList() operation.Operation {
	return defineRead(s, readOperation("agent_list", "agent list", "List agents", "List agents",
		"List the agents"+listDescription+
			" Claude Code's own agents (.claude/agents) are listed too; they have no version."), nil,
		func(ctx context.Context, v *inventory, in ListRequest) (AgentList, error) {
			list, err := v.listByKind(ctx, Agent, in)
			agents := make([]AgentEntry, 0, len(list.Tools))
			for _, e := range list.Tools {
				agents = append(agents, AgentEntry{e.Name, e.Version, e.Description, e.Tags, e.Source, e.Path, e.Registry,
					e.format})
			}
			return AgentList{Agents: agents, Total: list.Total, Limit: list.Limit, Offset: list.Offset, Notes: list.Notes}, err
		})
}

func (s toolDeps) toolList() operation.Operation {
	return defineRead(s, readOperation("tool_list", "tool list", "List tools", "List tools",
		"List the definitions of tools"+listDescription), nil,
		func(ctx context.Context, v *inventory, in ListRequest) (ToolList, error) {
			return v.listByKind(ctx, Tool, in)
		})
}

func (v *inventory) listByKind(ctx context.Context, kind Kind, in ListRequest) (ToolList, error) {
	found, problems, err := v.catalog.List(ctx, kind, sourceOf(in.Source))
	if err != nil {
		return ToolList{}, err
	}
	out := ToolList{Tools: []Entry{}, Limit: cmp.Or(in.Limit, defaultPage), Offset: in.Offset,
		Notes: v.notes(problems, nil)}
	matching := found[:0]
	for _, f := range found {
		if f.Errors == 0 && (len(in.Tags) == 0 || anyOf(f.Tags, in.Tags)) { // notes name the others
			matching = append(matching, f)
		}
	}
	out.Total = len(matching)
	for _, f := range pageOf(matching, in.Offset, out.Limit) {
		out.Tools = append(out.Tools, Entry{f.Name, f.Version, f.Description, f.Tags, f.Source, f.Path, f.Registry, f.Format})
	}
	return out, nil
}

// InfoRequest names a definition.
type InfoRequest struct {
	Name    string `json:"name" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Its name"`
	Version string `json:"version,omitempty" maxLength:"256" doc:"A version or a range as npm has them; the latest if left out" example:"^1.2.0"`
	Source  string `json:"source,omitempty" enum:"local,global,stockyard,all" default:"all" doc:"Where to look"`
}

// reference returns the name with the range. One in the name holds if no version is given.
func (in InfoRequest) reference() Reference {
	ref := ParseReference(in.Name)
	if in.Version != "" {
		ref = Reference{Name: ref.Name, Range: in.Version}
	}
	return ref
}

// Dependency is a reference of a definition to another.
type Dependency struct {
	Name    string `json:"name"`
	Version string `json:"version"` // the one that it resolves to here, else the range
	Type    Kind   `json:"type" enum:"tool,agent"`
}

// AgentInfo is an agent with what it extends merged in.
type AgentInfo struct {
	Name         string       `json:"name"`
	Version      string       `json:"version"`
	Description  string       `json:"description,omitempty"`
	Author       string       `json:"author,omitempty"`
	License      string       `json:"license,omitempty"`
	Tags         []string     `json:"tags,omitempty"`
	Tools        []string     `json:"tools,omitempty"`
	Extends      string       `json:"extends,omitempty"`
	Prompt       string       `json:"prompt,omitempty"`
	Source       Source       `json:"source" enum:"local,global,stockyard"`
	Path         string       `json:"path"`
	Registry     string       `json:"registry,omitempty" doc:"The registry that it comes from"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
	Format       Format       `json:"format,omitempty" enum:"claude-code" doc:"claude-code for one of Claude Code's own agents, which have no version"`
	Notes        []string     `json:"notes,omitempty" doc:"What was left out"`
}

// ToolInfo is a tool with what it extends merged in.
type ToolInfo struct {
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	Description  string         `json:"description,omitempty"`
	Author       string         `json:"author,omitempty"`
	License      string         `json:"license,omitempty"`
	Tags         []string       `json:"tags,omitempty"`
	InputSchema  map[string]any `json:"inputSchema,omitempty" doc:"JSON Schema of its input"`
	OutputSchema map[string]any `json:"outputSchema,omitempty" doc:"JSON Schema of its output"`
	Source       Source         `json:"source" enum:"local,global,stockyard"`
	Path         string         `json:"path"`
	Registry     string         `json:"registry,omitempty" doc:"The registry that it comes from"`
}

func (s toolDeps) agentInfo() operation.Operation {
	return defineRead(s, readOperation("agent_info", "agent info", "Read an agent", "Show an agent with what it extends",
		"Read one agent: prompt, tools, tags, version, and where it is. What it extends is merged in. dependencies are the "+
			"agent that it extends and its "+
			"tools, with the versions that they resolve to here. The project is looked at first, then the user's registry "+
			"(the highest version that "+
			"satisfies version), then the first of the configured registries that has the name. A broken agent is "+
			"VALIDATION_ERROR with its problems."), nil,
		func(ctx context.Context, v *inventory, in InfoRequest) (AgentInfo, error) {
			m, err := v.catalog.Info(ctx, Agent, in.reference(), sourceOf(in.Source))
			if err != nil {
				return AgentInfo{}, err
			}
			d := m.Definition
			return AgentInfo{
				Name: d.Name, Version: d.Version, Description: d.Description, Author: d.Author, License: d.License, Tags: d.Tags,
				Tools:   d.Tools,
				Extends: d.Extends, Prompt: d.Prompt, Source: m.Source, Path: m.Path, Registry: m.Registry, Format: d.Format,
				Dependencies: v.dependencies(ctx, d),
			}, nil
		})
}

func (s toolDeps) toolInfo() operation.Operation {
	return defineRead(s, readOperation("tool_info", "tool info", "Read a tool", "Show a tool with what it extends",
		"Read the definition of one tool: description, and its parameters and output as JSON Schema. What it extends is "+
			"merged in. The project is looked at "+
			"first, then the user's registry (the highest version that satisfies version), then the first of the configured "+
			"registries that has the name. A broken definition is "+
			"VALIDATION_ERROR with its problems."), nil,
		func(ctx context.Context, v *inventory, in InfoRequest) (ToolInfo, error) {
			m, err := v.catalog.Info(ctx, Tool, in.reference(), sourceOf(in.Source))
			if err != nil {
				return ToolInfo{}, err
			}
			d := m.Definition
			return ToolInfo{
				Name: d.Name, Version: d.Version, Description: d.Description, Author: d.Author, License: d.License, Tags: d.Tags,
				InputSchema: d.parameters(), OutputSchema: d.output(), Source: m.Source, Path: m.Path, Registry: m.Registry,
			}, nil
		})
}

// dependencies returns the agent that an agent extends, and its tools. Versions are read only from project and home:
// describing what is here must not wait for registries.
func (v *inventory) dependencies(ctx context.Context, d *Definition) (out []Dependency) {
	if d.Format == ClaudeCode { // its tools are those of Claude Code
		return nil
	}
	if d.Extends != "" {
		out = append(out, v.dependency(ctx, Agent, ParseReference(d.Extends)))
	}
	own := map[string]string{}
	for _, tool := range itemsOf(d.tree.get("custom_tools")) {
		own[tool.get("name").string()] = tool.get("version").string()
	}
	for _, text := range d.Tools {
		ref := ParseReference(text)
		if version, has := own[ref.Name]; has {
			out = append(out, Dependency{ref.Name, cmp.Or(version, d.Version), Tool})
			continue
		}
		out = append(out, v.dependency(ctx, Tool, ref))
	}
	return out
}

func (v *inventory) dependency(ctx context.Context, kind Kind, ref Reference) Dependency {
	for _, source := range []Source{Local, Global} {
		if found, err := v.catalog.resolve(ctx, kind, ref, source); err == nil && found.Definition.Version != "" {
			return Dependency{ref.Name, found.Definition.Version, kind}
		}
	}
	return Dependency{ref.Name, cmp.Or(ref.Range, "*"), kind}
}

// schemaVersion is the version of the schemas with which definitions are compared.
const schemaVersion = "1.0"

// ValidateRequest names a definition by its file or by its name.
type ValidateRequest struct {
	Path   string `json:"path,omitempty" maxLength:"4096" doc:"File in the project or in the user's registry; give this or name"`
	Name   string `json:"name,omitempty" positional:"true" maxLength:"256" doc:"Name, with @range if wanted; give this or path. What ends with .md, .yaml or .yml is a path"`
	Strict bool   `json:"strict,omitempty" default:"false" doc:"Also resolve references and warn of unknown fields"`
}

func (in ValidateRequest) check() *operation.Fault {
	switch {
	case in.Path == "" && in.Name == "":
		return operation.Invalid("path", "`path` or `name` is required")
	case in.Path != "" && in.Name != "":
		return operation.Invalid("path", "`path` and `name` exclude each other: give one of them")
	}
	return nil
}

// Flaw is a problem that makes a definition invalid.
type Flaw struct {
	Field      string   `json:"field"`
	Message    string   `json:"message"`
	Severity   Severity `json:"severity" enum:"error,warning"`
	Line       int      `json:"line,omitempty"`
	Column     int      `json:"column,omitempty"`
	Suggestion string   `json:"suggestion,omitempty"`
}

// Warning is a problem that a definition is valid with.
type Warning struct {
	Field      string `json:"field"`
	Message    string `json:"message"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// ValidateAnswer lists the problems of a definition.
type ValidateAnswer struct {
	Valid         bool      `json:"valid"`
	Path          string    `json:"path"`
	Errors        []Flaw    `json:"errors"`
	Warnings      []Warning `json:"warnings"`
	SchemaVersion string    `json:"schema_version"`
	Notes         []string  `json:"notes,omitempty" doc:"What was left out"`
}

const validateDescription = " against its schema, given by path or by name. Every problem is listed with its field, " +
	"line and column: errors make it invalid, warnings do " +
	"not. With strict, what it extends and other references must resolve, and unknown fields are warnings. A definition " +
	"that is invalid is an " +
	"answer with valid: false, not an error of the call."

func (s toolDeps) agentValidate() operation.Operation {
	return s.validate(Agent, readOperation("agent_validate", "agent validate", "Validate an agent",
		"Check an agent against its schema",
		"Check an agent (YAML or Markdown)"+validateDescription))
}

func (s toolDeps) toolValidate() operation.Operation {
	return s.validate(Tool, readOperation("tool_validate", "tool validate", "Validate a tool",
		"Check a tool against its schema",
		"Check the definition of a tool (YAML or Markdown)"+validateDescription))
}

func (s toolDeps) validate(kind Kind, o operation.Operation) operation.Operation {
	return defineRead(s, o, ValidateRequest.check, func(ctx context.Context, v *inventory,
		in ValidateRequest) (ValidateAnswer, error) {
		if in.Path == "" && knownExtension(path.Ext(in.Name)) {
			in.Path = in.Name
		}
		if in.Path != "" {
			return validated(v.files.validatePath(ctx, kind, in.Path, in.Strict))
		}
		return validated(v.catalog.validateNamed(ctx, kind, ParseReference(in.Name), in.Strict))
	})
}

// Incomplete implements operation.Partial: the command ends with an error where the definition is not valid.
func (v ValidateAnswer) Incomplete() bool { return !v.Valid }

func validated(v Validation, err error) (ValidateAnswer, error) {
	out := ValidateAnswer{Valid: v.valid(), Path: v.Path, Errors: []Flaw{}, Warnings: []Warning{},
		SchemaVersion: schemaVersion}
	for _, p := range v.Problems {
		if p.Severity == SeverityError {
			out.Errors = append(out.Errors, Flaw{p.Field, p.Message, p.Severity, p.Line, p.Column, p.Suggestion})
		} else {
			out.Warnings = append(out.Warnings, Warning{p.Field, p.Message, p.Line, p.Column, p.Suggestion})
		}
	}
	return out, err
}
