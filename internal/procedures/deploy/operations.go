package deploy

import (
	"context"
	"embed"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// ToolsetName is the toolset's name in CLAUDEOPS_TOOLSETS.
const ToolsetName = "deploy"

// ServerName is the contract's name of a server that has this toolset alone.
const ServerName = "agentpack"

// ProtocolVersions returns the contract's, the preferred one first.
func ProtocolVersions() []string { return []string{"2025-11-25", "2025-03-26"} }

// The tools' names.
const (
	ToolPlan     = "plan"
	ToolDiff     = "diff"
	ToolStatus   = "status"
	ToolDoctor   = "doctor"
	ToolApply    = "deploy_apply"
	ToolRollback = "rollback"
)

// What the contract has no tool for, and so no tool leads to. They have a command, and a place in REST.
const (
	NameExplain = "deploy_explain"
	NamePropose = "deploy_propose"
	NameUpdate  = "deploy_update"
)

// How long calls may take. Reading may fetch modules of other repositories.
const (
	readTimeout  = 2 * time.Minute
	writeTimeout = 5 * time.Minute
)

//go:embed schema/*.json
var schemas embed.FS

// set holds the dependencies of the tools.
type set struct {
	kernel  func() *operation.Kernel
	service func() *Service
	propose Proposer
}

// Toolset returns the six tools of agentpack's published contract, and what people have beside them. kernel and service
// are called for each call.
func Toolset(version string, kernel func() *operation.Kernel, service func() *Service,
	propose Proposer) operation.Toolset {
	s := set{kernel, service, propose}
	return operation.Toolset{
		Name: ToolsetName, Schemas: schemas, Form: form(version),
		Instructions: "Put procedures in place for the agents of this machine: plan and diff say what deploy_apply would " +
			"change, status what has drifted, " +
			"doctor what stands in the way. deploy_apply and rollback need yes: true.",
		Operations: operation.WithExamples([]operation.Operation{
			s.plan(), s.diff(), s.status(), s.doctor(), s.apply(), s.rollback(), s.explain(), s.proposeDrift(), s.update(),
		}, examples()),
		Reject: func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
			kernel().Reject(ctx, call, name, why)
		},
		Listed: func(o operation.Operation) bool { return kernel().Listed(o) },
	}
}

// named begins a tool.
func named(name, title, summary, description string) operation.Operation {
	return operation.Operation{
		Name: name, Summary: summary, Effect: operation.Read,
		Needs:   operation.Needs{Tier: gitprovider.TierObserve, Dry: operation.DryTried},
		Command: ToolsetName + " " + commandOf(name).words(), Tool: operation.Tool{Title: title, Description: description},
	}
}

// beside begins an operation that is in no contract.
func beside(name, summary, description string) operation.Operation {
	return named(name, "", summary, description)
}

// words returns the command that a person types after claudeops deploy.
func (c command) words() string {
	if c.name == "deploy" {
		return "apply"
	}
	return c.name
}

// PlanRequest says what is to be planned.
type PlanRequest struct {
	Repo    string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Profile string `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Target  string `json:"target,omitempty" default:"all" enum:"all,codex,claude_code,cursor,vscode" doc:"Agent program to plan for"`
	Machine string `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
	DryRun  bool   `json:"dry_run,omitempty" default:"false" doc:"No effect: nothing is written anyway"`
}

func (r PlanRequest) request() Request {
	return Request{Repo: r.Repo, Profile: r.profile(), Target: r.Target, Machine: r.Machine}
}

func (r PlanRequest) profile() string {
	if r.Profile == "" {
		return "default"
	}
	return r.Profile
}

// maxPath bounds a path in the arguments, in bytes.
const maxArgument = 4096

// bounded refuses texts that are longer than any path.
func bounded(texts map[string]string) *operation.Fault {
	for _, name := range []string{"repo", "profile", "machine", "to"} {
		if len(texts[name]) > maxArgument {
			return operation.Invalid(name, "`%s` has %d bytes; at most %d are possible", name, len(texts[name]), maxArgument)
		}
	}
	return nil
}

func (r PlanRequest) check() *operation.Fault {
	return bounded(map[string]string{"repo": r.Repo, "profile": r.Profile, "machine": r.Machine})
}

// PlanData says what a deployment would change.
type PlanData struct {
	Profile string              `json:"profile"`
	Targets []change.TargetName `json:"targets"`
	Changes []change.Change     `json:"changes"`
	Summary change.Summary      `json:"summary"`
}

func dataOf(profile string, p *change.Plan) PlanData {
	return PlanData{profile, append([]change.TargetName{}, p.Targets...), append([]change.Change{}, p.Changes...),
		p.Summary()}
}

// planned returns the plan that a call asks for. The audit has a row if something was fetched for it.
func (s set) planned(ctx context.Context, call operation.Call, service *Service, in PlanRequest) (p *change.Plan,
	err error) {
	if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
		return nil, err
	}
	ctx, fetched := noting(ctx)
	defer func() { fetched.noteTo(call, operation.Note{}) }()
	return service.Plan(ctx, in.request())
}

func (s set) plan() operation.Operation {
	o := named(ToolPlan, "Plan a deployment", "Say which files a deployment would change",
		"Say which files deploy_apply would create, update and delete. update_kind adopt_update marks files that were "+
			"there before and need adopt. Changes nothing.")
	way := operation.Way[PlanRequest]{Check: PlanRequest.check, Timeout: readTimeout}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in PlanRequest) (out Envelope[PlanData], err error) {
			service := s.service()
			p, err := s.planned(ctx, call, service, in)
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(ToolPlan, service.version, dataOf(in.profile(), p), p.Warnings), nil
		})
}
