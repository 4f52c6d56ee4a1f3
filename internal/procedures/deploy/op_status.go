package deploy

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// StatusRequest says what to compare with what was deployed.
type StatusRequest struct {
	Repo    string   `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Profile string   `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Target  string   `json:"target,omitempty" default:"all" enum:"all,codex,claude_code,cursor,vscode" doc:"Agent program to look at"`
	Machine string   `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
	Only    []string `json:"only,omitempty" enum:"missing,modified,extra" doc:"Only drift of these kinds"`
	DryRun  bool     `json:"dry_run,omitempty" default:"false" doc:"No effect: nothing is written anyway"`
}

// DriftSummary counts drift.
type DriftSummary struct {
	Modified int `json:"modified"`
	Missing  int `json:"missing"`
	Extra    int `json:"extra"`
}

func (s *DriftSummary) add(k change.DriftKind) {
	switch k {
	case change.Modified:
		s.Modified++
	case change.Missing:
		s.Missing++
	case change.Extra:
		s.Extra++
	}
}

// RootSummary counts the drift of a folder.
type RootSummary struct {
	Target    change.TargetName `json:"target"`
	Root      string            `json:"root"`
	RootPosix string            `json:"root_posix"`
	Summary   DriftSummary      `json:"summary"`
}

// NextAction is a possible action on a finding.
type NextAction struct {
	Action  string `json:"action"`
	Command string `json:"command"`
}

// StatusData says what is not as it was deployed.
type StatusData struct {
	Profile       string              `json:"profile"`
	Targets       []change.TargetName `json:"targets"`
	Drift         []change.Drift      `json:"drift"`
	Summary       DriftSummary        `json:"summary"`
	SummaryByRoot []RootSummary       `json:"summary_by_root"`
	SummaryTotal  *DriftSummary       `json:"summary_total,omitempty" doc:"Without the filter only"`
	NextActions   []string            `json:"next_actions,omitempty"`
	Detailed      []NextAction        `json:"next_actions_detailed,omitempty"`
}

func (s set) status() operation.Operation {
	o := named(ToolStatus, "See drift", "Say which files are not as they were deployed",
		"Say which files are not as they were deployed: modified, missing, or extra, which nobody has deployed. only "+
			"filters. Changes nothing.")
	way := operation.Way[StatusRequest]{Timeout: readTimeout, Check: func(in StatusRequest) *operation.Fault {
		return bounded(map[string]string{"repo": in.Repo, "profile": in.Profile, "machine": in.Machine})
	}}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in StatusRequest) (out Envelope[StatusData], err error) {
			service := s.service()
			if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
				return out, faultOf(err)
			}
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			plan := PlanRequest{Repo: in.Repo, Profile: in.Profile, Target: in.Target, Machine: in.Machine}
			targets, list, warnings, err := service.Status(ctx, plan.request())
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(ToolStatus, service.version, statusData(plan.profile(), targets, list, in.Only), warnings), nil
		})
}

// statusData counts and filters drift.
func statusData(profile string, targets []change.TargetName, list []change.Drift, only []string) StatusData {
	data := StatusData{Profile: profile, Targets: append([]change.TargetName{}, targets...), Drift: []change.Drift{},
		SummaryByRoot: []RootSummary{}}
	var total DriftSummary
	for _, item := range list {
		total.add(item.Kind)
		if len(only) > 0 && !slices.Contains(only, string(item.Kind)) {
			continue
		}
		data.Drift = append(data.Drift, item)
		data.Summary.add(item.Kind)
		at := slices.IndexFunc(data.SummaryByRoot,
			func(r RootSummary) bool { return r.Target == item.Target && r.Root == item.Root })
		if at < 0 {
			at = len(data.SummaryByRoot)
			data.SummaryByRoot = append(data.SummaryByRoot, RootSummary{Target: item.Target, Root: item.Root,
				RootPosix: item.RootPosix})
		}
		data.SummaryByRoot[at].Summary.add(item.Kind)
	}
	if len(only) > 0 {
		data.SummaryTotal = &total
	}
	if total.Modified+total.Missing > 0 {
		data.Detailed = []NextAction{{"diff", "claudeops deploy diff"}, {"deploy_apply", "claudeops deploy apply"}}
		for _, a := range data.Detailed {
			data.NextActions = append(data.NextActions, a.Command)
		}
	}
	return data
}
