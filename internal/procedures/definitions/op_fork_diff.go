package definitions

import (
	"context"

	"github.com/aymanbagabas/go-udiff"
	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/operation"
)

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

func (s set) forkDiff() operation.Operation {
	return reading(s, named("fork_diff", "fork diff", "Compare a fork", "Show how a fork differs from its upstream",
		"Compare a fork with the version of upstream that it was forked from, field by field: added only the fork has, "+
			"removed only upstream. unified is the same as a "+
			"diff of YAML from upstream to the fork."), nil,
		func(ctx context.Context, v *view, in ForkDiffRequest) (ForkDiffAnswer, error) {
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
	return udiff.Unified(Reference{f.Origin.Name, f.Origin.Version}.String(), label(f.Found), before, after), nil
}

func yamlOf(fields map[string]any) (string, error) {
	if len(fields) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(fields)
	return string(text), err
}
