package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// DoctorRequest says what to look at.
type DoctorRequest struct {
	Repo   string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Target string `json:"target,omitempty" default:"all" enum:"all,codex,claude_code,cursor,vscode" doc:"Agent program to look at"`
}

// GitignoreFix is a line that doctor has added to a .gitignore. This doctor only looks, so there is never one.
type GitignoreFix struct {
	Path  string   `json:"path"`
	Added []string `json:"added"`
}

// DoctorData lists the obstacles to a deployment.
type DoctorData struct {
	MachineID      string              `json:"machine_id"`
	Roots          []change.RootHealth `json:"roots"`
	GitignoreFixes []GitignoreFix      `json:"gitignore_fixes"`
	NextActions    []string            `json:"next_actions,omitempty"`
}

func (s set) doctor() operation.Operation {
	o := named(ToolDoctor, "Look what stands in the way", "Say what would stop a deployment",
		"Look at the folders that are deployed to: whether they are there and can be written, and whether git would commit "+
			"the manifests in them. Changes nothing.")
	way := operation.Way[DoctorRequest]{Timeout: readTimeout,
		Check: func(in DoctorRequest) *operation.Fault { return bounded(map[string]string{"repo": in.Repo}) }}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in DoctorRequest) (out Envelope[DoctorData], err error) {
			service := s.service()
			if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
				return out, faultOf(err)
			}
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			data, warnings, err := service.Doctor(ctx, Request{Repo: in.Repo, Target: in.Target})
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(ToolDoctor, service.version, data, warnings), nil
		})
}

// Doctor looks at the folders that are deployed to.
func (s *Service) Doctor(ctx context.Context, r Request) (data DoctorData, warnings []string, err error) {
	d, err := s.desire(ctx, r, s.engine.Hashes)
	if err != nil {
		return data, nil, err
	}
	data = DoctorData{MachineID: s.setup.machineID(r.Machine), Roots: []change.RootHealth{},
		GitignoreFixes: []GitignoreFix{}}
	for _, root := range d.Roots {
		h := d.Health(root)
		data.Roots = append(data.Roots, h)
		if h.Suggestion != nil && !h.Exists {
			data.NextActions = append(data.NextActions, "mkdir -p "+quoted(root.Dir))
		}
		manifest := change.ManifestPath(root.Dir, root.Target)
		if ignored, knows := s.setup.Git.ignores(ctx, manifest); knows && !ignored {
			warnings = append(warnings,
				fmt.Sprintf(
					"%s would be committed with the repository that it lies in; add .agentpack.manifest*.json to its .gitignore",
					manifest))
		}
	}
	return data, warnings, nil
}

// quoted returns a path as a shell reads it as one word.
func quoted(name string) string {
	if plain := strings.NewReplacer("/", "", ".", "").Replace(name); safe(plain) == plain {
		return name
	}
	out := "'"
	for _, r := range name {
		if r == '\'' {
			out += `'\''`
			continue
		}
		out += string(r)
	}
	return out + "'"
}
