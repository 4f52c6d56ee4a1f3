package definitions

import (
	"cmp"
	"context"

	"github.com/claudeops/claudeops/internal/operation"
)

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

func (s set) agentInfo() operation.Operation {
	return reading(s, named("agent_info", "agent info", "Read an agent", "Show an agent with what it extends",
		"Read one agent: prompt, tools, tags, version, and where it is. What it extends is merged in. dependencies are the "+
			"agent that it extends and its "+
			"tools, with the versions that they resolve to here. The project is looked at first, then the user's registry "+
			"(the highest version that "+
			"satisfies version), then the first of the configured registries that has the name. A broken agent is "+
			"VALIDATION_ERROR with its problems."), nil,
		func(ctx context.Context, v *view, in InfoRequest) (AgentInfo, error) {
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

func (s set) toolInfo() operation.Operation {
	return reading(s, named("tool_info", "tool info", "Read a tool", "Show a tool with what it extends",
		"Read the definition of one tool: description, and its parameters and output as JSON Schema. What it extends is "+
			"merged in. The project is looked at "+
			"first, then the user's registry (the highest version that satisfies version), then the first of the configured "+
			"registries that has the name. A broken definition is "+
			"VALIDATION_ERROR with its problems."), nil,
		func(ctx context.Context, v *view, in InfoRequest) (ToolInfo, error) {
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
func (v *view) dependencies(ctx context.Context, d *Definition) (out []Dependency) {
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

func (v *view) dependency(ctx context.Context, kind Kind, ref Reference) Dependency {
	for _, source := range []Source{Local, Global} {
		if found, err := v.catalog.resolve(ctx, kind, ref, source); err == nil && found.Definition.Version != "" {
			return Dependency{ref.Name, found.Definition.Version, kind}
		}
	}
	return Dependency{ref.Name, cmp.Or(ref.Range, "*"), kind}
}
