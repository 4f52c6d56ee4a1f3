package deploy

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// UpdateRequest names modules.
type UpdateRequest struct {
	Modules []string `json:"modules,omitempty" positional:"true" maxItems:"100" doc:"Ids of modules of other repositories; without any, all that follow a branch or a tag"`
	Yes     bool     `json:"yes,omitempty" default:"false" doc:"Write the lock file; without it, the plan is shown alone"`
	Profile string   `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Machine string   `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
}

// UpdateData says which modules have newer commits, and what a deployment would change with them.
type UpdateData struct {
	Written bool                `json:"written" doc:"The lock file names the commits now"`
	Lock    string              `json:"lock" doc:"The lock file"`
	Modules []ModuleUpdate      `json:"modules"`
	Targets []change.TargetName `json:"targets"`
	Changes []change.Change     `json:"changes" doc:"Of a deployment with these commits"`
	Summary change.Summary      `json:"summary"`
}

func (s set) update() operation.Operation {
	o := beside(NameUpdate, "Lock modules of other repositories to their newest commits",
		"Look for the newest commits of the modules of other repositories, and show what a deployment would change with "+
			"them. With yes, the lock file\n"+
			"names these commits from then on. Nothing is deployed: deploy apply does that.")
	o.Effect = operation.Write
	way := operation.Way[UpdateRequest]{
		Timeout: writeTimeout, DryRun: func(in UpdateRequest) bool { return !in.Yes },
		Roots: func(UpdateRequest) []string { return []string{s.service().setup.repo("")} },
		Check: func(in UpdateRequest) *operation.Fault {
			return bounded(map[string]string{"profile": in.Profile, "machine": in.Machine})
		},
	}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in UpdateRequest) (out Envelope[UpdateData], err error) {
			service := s.service()
			ctx, fetched := noting(ctx)
			var note operation.Note
			defer func() { fetched.noteTo(call, note) }()
			u, err := service.Newest(ctx, Request{Profile: in.Profile, Machine: in.Machine}, in.Modules)
			if err != nil {
				return out, faultOf(err)
			}
			plan := dataOf(in.Profile, u.Plan)
			data := UpdateData{Lock: u.lockPath(), Modules: u.Modules, Targets: plan.Targets, Changes: plan.Changes,
				Summary: plan.Summary}
			if !call.DryRun {
				if data.Written, err = service.writeLock(u); err != nil {
					return out, faultOf(err)
				}
			}
			if data.Written {
				for _, m := range u.Modules {
					if m.Newer() {
						note.Message += fmt.Sprintf("%s to %.12s; ", m.Module, m.To)
					}
				}
				if said := service.committed(u); said != "" {
					u.Warnings = append(u.Warnings, said)
				}
			}
			return enveloped(NameUpdate, service.version, data, u.Warnings), nil
		})
}
