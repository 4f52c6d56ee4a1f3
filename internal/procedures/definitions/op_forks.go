package definitions

import (
	"context"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/operation"
)

// ForkListRequest selects forks.
type ForkListRequest struct {
	Type string `json:"type,omitempty" enum:"agent,tool,all" default:"all" doc:"Only forks of this kind"`
}

// Upstream identifies the definition that a fork was made from.
type Upstream struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ForkEntry is a fork in a list.
type ForkEntry struct {
	Name              string   `json:"name"`
	Type              Kind     `json:"type" enum:"agent,tool"`
	Upstream          Upstream `json:"upstream"`
	LocalVersion      string   `json:"localVersion"`
	Path              string   `json:"path"`
	HasUpstreamUpdate bool     `json:"hasUpstreamUpdate"`
	Registry          string   `json:"registry,omitempty" doc:"The registry that has upstream's highest version"`
}

// ForkList is the forks.
type ForkList struct {
	Forks []ForkEntry `json:"forks"`
	Total int         `json:"total"`
	Notes []string    `json:"notes,omitempty" doc:"Registries that did not answer, and what was left out"`
}

func (s toolDeps) forkList() operation.Operation {
	return defineRead(s, readOperation("fork_list", "fork list", "List forks", "List forked agents and tools",
		"List the agents and tools of the project and of the user's registry that were forked from others, with the "+
			"version that each was forked from, and "+
			"whether upstream has a higher one."), nil,
		func(ctx context.Context, v *inventory, in ForkListRequest) (ForkList, error) {
			kinds := Kinds()
			if in.Type != "" && in.Type != "all" {
				kinds = []Kind{Kind(in.Type)}
			}
			forks, err := v.catalog.Forks(ctx, kinds...)
			out := ForkList{Forks: []ForkEntry{}, Total: len(forks), Notes: v.notes(nil, v.registries.troubles())}
			for _, f := range forks {
				out.Forks = append(out.Forks, ForkEntry{
					Name: f.Definition.Name, Type: f.Definition.Kind, Upstream: Upstream{f.Origin.Name, f.Origin.Version},
					LocalVersion: f.Definition.Version, Path: f.Path, HasUpstreamUpdate: f.Updated(), Registry: f.From,
				})
			}
			return out, err
		})
}

// ForkRequest names a fork.
type ForkRequest struct {
	Name string `json:"name" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"The fork's own name"`
}

// CurrentUpstream identifies the definition that a fork was made from, and its present version.
type CurrentUpstream struct {
	Name           string `json:"name"`
	Version        string `json:"version"`
	CurrentVersion string `json:"currentVersion" doc:"The highest that was found; empty if upstream was not"`
}

// ForkInfo is a fork.
type ForkInfo struct {
	Name              string          `json:"name"`
	Type              Kind            `json:"type" enum:"agent,tool"`
	Path              string          `json:"path"`
	Upstream          CurrentUpstream `json:"upstream"`
	LocalVersion      string          `json:"localVersion"`
	CreatedAt         string          `json:"createdAt"`
	LastMerged        string          `json:"lastMerged,omitempty"`
	HasUpstreamUpdate bool            `json:"hasUpstreamUpdate"`
	Registry          string          `json:"registry,omitempty" doc:"The registry that has upstream's highest version"`
}

func (s toolDeps) forkInfo() operation.Operation {
	return defineRead(s, readOperation("fork_info", "fork info", "Read a fork", "Show where a fork comes from",
		"Read where a forked agent or tool comes from: upstream's name, the version that was forked, the highest that "+
			"there is now, when it was forked and last merged. "+
			"VALIDATION_ERROR for a definition that is not a fork."), nil,
		func(ctx context.Context, v *inventory, in ForkRequest) (ForkInfo, error) {
			f, err := v.catalog.Fork(ctx, in.Name)
			if err != nil {
				return ForkInfo{}, err
			}
			return ForkInfo{
				Name: f.Definition.Name, Type: f.Definition.Kind, Path: f.Path,
				Upstream:     CurrentUpstream{f.Origin.Name, f.Origin.Version, f.Current},
				LocalVersion: f.Definition.Version, CreatedAt: f.Origin.CreatedAt, LastMerged: f.Origin.LastMerged,
				HasUpstreamUpdate: f.Updated(), Registry: f.From,
			}, nil
		})
}

// ForkCheckRequest names a fork, or none for all.
type ForkCheckRequest struct {
	Name string `json:"name,omitempty" positional:"true" maxLength:"256" doc:"One fork; all of them if left out"`
}

// ForkUpdate is a fork whose upstream has a higher version.
type ForkUpdate struct {
	Name            string `json:"name"`
	Type            Kind   `json:"type" enum:"agent,tool"`
	LocalVersion    string `json:"localVersion"`
	UpstreamVersion string `json:"upstreamVersion"`
	BreakingChanges bool   `json:"breakingChanges"`
	Registry        string `json:"registry,omitempty" doc:"The registry that has upstreamVersion"`
}

// ForkCheckAnswer lists the updates of upstream that forks lack.
type ForkCheckAnswer struct {
	Updates    []ForkUpdate `json:"updates"`
	Total      int          `json:"total"`
	HasUpdates bool         `json:"hasUpdates"`
	Notes      []string     `json:"notes,omitempty" doc:"Registries that did not answer, and what was left out"`
}

func (s toolDeps) forkCheck() operation.Operation {
	return defineRead(s, readOperation("fork_check", "fork check", "Check forks", "Check forks for upstream's updates",
		"List the forks whose upstream has a higher version than the one that was forked or merged last. breakingChanges "+
			"says that its major number is higher. "+
			"See what differs with fractary_forge_fork_diff."), nil,
		func(ctx context.Context, v *inventory, in ForkCheckRequest) (ForkCheckAnswer, error) {
			forks, err := v.forks(ctx, in.Name)
			forks = slices.DeleteFunc(forks, func(f Fork) bool { return !f.Updated() })
			out := ForkCheckAnswer{
				Updates: []ForkUpdate{}, Total: len(forks), HasUpdates: len(forks) > 0,
				Notes: v.notes(nil, v.registries.troubles()),
			}
			for _, f := range forks {
				out.Updates = append(out.Updates, ForkUpdate{f.Definition.Name, f.Definition.Kind, f.Definition.Version, f.Current,
					f.Breaking(), f.From})
			}
			return out, err
		})
}

// forks returns all of them, or the one with a name.
func (v *inventory) forks(ctx context.Context, name string) ([]Fork, error) {
	if name == "" {
		return v.catalog.Forks(ctx, Kinds()...)
	}
	f, err := v.catalog.Fork(ctx, name)
	if err != nil {
		return nil, err
	}
	return []Fork{f}, nil
}

// ForkDiffRequest names a fork.
type ForkDiffRequest struct {
	Name   string `json:"name" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"The fork's own name"`
	Format string `json:"format,omitempty" enum:"unified,json" default:"unified" doc:"unified adds the differences as a unified diff"`
}

// DiffSummary counts differences.
type DiffSummary struct {
	Added    int `json:"added"`
	Removed  int `json:"removed"`
	Modified int `json:"modified"`
}

// ForkDiffAnswer lists the differences between a fork and the version of upstream that it was forked from.
type ForkDiffAnswer struct {
	Name            string       `json:"name"`
	UpstreamVersion string       `json:"upstreamVersion"`
	LocalVersion    string       `json:"localVersion"`
	Differences     []Difference `json:"differences"`
	Summary         DiffSummary  `json:"summary"`
	Unified         string       `json:"unified,omitempty"`
	Registry        string       `json:"registry,omitempty" doc:"The registry that upstream comes from"`
	Notes           []string     `json:"notes,omitempty" doc:"What was left out"`
}

func (s toolDeps) forkDiff() operation.Operation {
	return defineRead(s, readOperation("fork_diff", "fork diff", "Compare a fork", "Show how a fork differs from its upstream",
		"Compare a fork with the version of upstream that it was forked from, field by field: what was added is only in "+
			"the fork, what was removed only in upstream. unified is the same as a "+
			"diff of YAML from upstream to the fork."), nil,
		func(ctx context.Context, v *inventory, in ForkDiffRequest) (ForkDiffAnswer, error) {
			f, err := v.catalog.Fork(ctx, in.Name)
			if err != nil {
				return ForkDiffAnswer{}, err
			}
			upstream, err := v.catalog.upstream(ctx, f)
			if err != nil {
				return ForkDiffAnswer{}, err
			}
			differences := differences(f, upstream)
			out := ForkDiffAnswer{
				Name: f.Definition.Name, UpstreamVersion: f.Origin.Version, LocalVersion: f.Definition.Version,
				Differences: differences,
				Registry:    upstream.Registry,
			}
			for _, d := range differences {
				switch d.Change {
				case Added:
					out.Summary.Added++
				case Removed:
					out.Summary.Removed++
				default:
					out.Summary.Modified++
				}
			}
			if in.Format != "json" {
				out.Unified, err = unified(f, differences)
			}
			return out, err
		})
}

// unified returns the fields that differ, as YAML, in a unified diff.
func unified(f Fork, differences []Difference) (string, error) {
	upstream, local := map[string]any{}, map[string]any{}
	for _, d := range differences {
		if d.Change != Added {
			upstream[d.Field] = d.Upstream
		}
		if d.Change != Removed {
			local[d.Field] = d.Local
		}
	}
	before, err := yamlOf(upstream)
	if err != nil {
		return "", err
	}
	after, err := yamlOf(local)
	if err != nil {
		return "", err
	}
	return textedit.Unified(Reference{f.Origin.Name, f.Origin.Version}.String(), label(f.Found), before, after), nil
}

func yamlOf(fields map[string]any) (string, error) {
	if len(fields) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(fields)
	return string(text), err
}
