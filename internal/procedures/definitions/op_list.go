package definitions

import (
	"cmp"
	"context"

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

func (s set) agentList() operation.Operation {
	return reading(s, named("agent_list", "agent list", "List agents", "List agents", "List the agents"+listDescription+
		" Claude Code's own agents (.claude/agents) are listed too; they have no version."), nil,
		func(ctx context.Context, v *view, in ListRequest) (AgentList, error) {
			list, err := v.list(ctx, Agent, in)
			agents := make([]AgentEntry, 0, len(list.Tools))
			for _, e := range list.Tools {
				agents = append(agents, AgentEntry{e.Name, e.Version, e.Description, e.Tags, e.Source, e.Path, e.Registry,
					e.format})
			}
			return AgentList{Agents: agents, Total: list.Total, Limit: list.Limit, Offset: list.Offset, Notes: list.Notes}, err
		})
}

func (s set) toolList() operation.Operation {
	return reading(s, named("tool_list", "tool list", "List tools", "List tools", "List the definitions of tools"+
		listDescription), nil,
		func(ctx context.Context, v *view, in ListRequest) (ToolList, error) { return v.list(ctx, Tool, in) })
}

func (v *view) list(ctx context.Context, kind Kind, in ListRequest) (ToolList, error) {
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
	for _, f := range page(matching, in.Offset, out.Limit) {
		out.Tools = append(out.Tools, Entry{f.Name, f.Version, f.Description, f.Tags, f.Source, f.Path, f.Registry, f.Format})
	}
	return out, nil
}
