package deploy

import (
	"context"
	"embed"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/fileset"
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

// toolDeps holds the dependencies of the tools.
type toolDeps struct {
	kernel  func() *operation.Kernel
	service func() *Service
	propose Proposer
}

// Toolset returns the six tools of agentpack's published contract, and what people have beside them. kernel and service
// are called for each call.
func Toolset(version string, kernel func() *operation.Kernel, service func() *Service,
	propose Proposer) operation.Toolset {
	s := toolDeps{kernel, service, propose}
	return operation.Toolset{
		Name: ToolsetName, Schemas: schemas, Form: operationForm(version),
		Instructions: "Put procedures in place for the agents of this machine: plan and diff say what deploy_apply would " +
			"change, status what has drifted, " +
			"doctor what would stop it. deploy_apply and rollback need yes: true.",
		Operations: operation.WithExamples([]operation.Operation{
			s.plan(), s.diffOperation(), s.statusOperation(), s.doctor(), s.apply(), s.rollback(), s.explain(), s.proposeDrift(),
			s.update(),
		}, examples()),
		Reject: func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
			kernel().Reject(ctx, call, name, why)
		},
		Listed: func(o operation.Operation) bool { return kernel().Listed(o) },
	}
}

// readOperation begins a tool.
func readOperation(name, title, summary, description string) operation.Operation {
	return operation.Operation{
		Name: name, Summary: summary, Effect: operation.Read,
		Needs:   operation.Needs{Tier: gitprovider.TierObserve, Dry: operation.DryTried},
		Command: ToolsetName + " " + commandOf(name).commandWords(),
		Tool:    operation.Tool{Title: title, Description: description},
	}
}

// beside begins an operation that is in no contract.
func beside(name, summary, description string) operation.Operation {
	return readOperation(name, "", summary, description)
}

// commandWords returns the command that a person types after claudeops deploy.
func (c toolCommand) commandWords() string {
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

func (r PlanRequest) planInput() Request {
	return Request{Repo: r.Repo, Profile: r.profile(), Target: r.Target, Machine: r.Machine}
}

func (r PlanRequest) profile() string {
	if r.Profile == "" {
		return "default"
	}
	return r.Profile
}

// maxArgument bounds a path in the arguments, in bytes.
const maxArgument = 4096

// checkArgumentLengths refuses texts that are longer than any path.
func checkArgumentLengths(texts map[string]string) *operation.Fault {
	for _, name := range []string{"repo", "profile", "machine", "to"} {
		if len(texts[name]) > maxArgument {
			return operation.Invalid(name, "`%s` has %d bytes; at most %d are possible", name, len(texts[name]), maxArgument)
		}
	}
	return nil
}

func (r PlanRequest) check() *operation.Fault {
	return checkArgumentLengths(map[string]string{"repo": r.Repo, "profile": r.Profile, "machine": r.Machine})
}

// PlanData says what a deployment would change.
type PlanData struct {
	Profile string               `json:"profile"`
	Targets []fileset.TargetName `json:"targets"`
	Changes []fileset.Change     `json:"changes"`
	Summary fileset.Summary      `json:"summary"`
}

func dataOf(profile string, p *fileset.Plan) PlanData {
	return PlanData{profile, append([]fileset.TargetName{}, p.Targets...), append([]fileset.Change{}, p.Changes...),
		p.Summary()}
}

// planned returns the plan that a call asks for. The audit has a row if something was fetched for it.
func (s toolDeps) planned(ctx context.Context, call operation.Call, service *Service, in PlanRequest) (p *fileset.Plan,
	err error) {
	if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
		return nil, err
	}
	ctx, fetched := noting(ctx)
	defer func() { fetched.noteTo(call, operation.Note{}) }()
	return service.Plan(ctx, in.planInput())
}

func (s toolDeps) plan() operation.Operation {
	o := readOperation(ToolPlan, "Plan a deployment", "Say which files a deployment would change",
		"Say which files deploy_apply would create, update and delete. update_kind adopt_update marks files that were "+
			"there before and need adopt. Changes nothing.")
	way := operation.CallSpec[PlanRequest]{Check: PlanRequest.check, Timeout: readTimeout}
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

// Envelope is every answer in the form that agentpack publishes.
type Envelope[Data any] struct {
	SchemaVersion int               `json:"schema_version"`
	OK            bool              `json:"ok"`
	Command       string            `json:"command"`
	CommandID     string            `json:"command_id"`
	CommandPath   []string          `json:"command_path"`
	Version       string            `json:"version"`
	Data          Data              `json:"data"`
	Warnings      []string          `json:"warnings"`
	Errors        []EnvelopeFailure `json:"errors"`
}

// EnvelopeFailure is an error in an Envelope.
type EnvelopeFailure struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// toolCommand identifies a tool by the names of agentpack's command line.
type toolCommand struct {
	name string
	id   string
	path []string
}

func commandOf(tool string) toolCommand {
	if tool == ToolApply {
		return toolCommand{"deploy", "deploy --apply", []string{"deploy", "--apply"}}
	}
	tool = strings.TrimPrefix(tool, "deploy_") // of those that are not in the contract
	return toolCommand{tool, tool, []string{tool}}
}

// enveloped returns an answer that succeeded.
func enveloped[Data any](tool, version string, data Data, warnings []string) Envelope[Data] {
	c := commandOf(tool)
	return Envelope[Data]{
		SchemaVersion: 1, OK: true, Command: c.name, CommandID: c.id, CommandPath: c.path, Version: version, Data: data,
		Warnings: append([]string{}, warnings...), Errors: []EnvelopeFailure{},
	}
}

// Codes of what the way of a call refuses. They are ours; agentpack's server has no such steps.
const (
	notAllowed       Code = "E_NOT_ALLOWED"
	argumentsInvalid Code = "E_ARGUMENTS_INVALID"
	timedOut         Code = "E_TIMEOUT"
	answerTooLarge   Code = "E_ANSWER_TOO_LARGE"
)

// operationForm returns the form of agentpack's answers.
func operationForm(version string) *operation.Form {
	return &operation.Form{
		FailureType: reflect.TypeFor[Envelope[map[string]any]](),
		Failure: func(o operation.Operation, err error, requestID string) any {
			c := commandOf(o.Name)
			return Envelope[map[string]any]{
				SchemaVersion: 1, Command: c.name, CommandID: c.id, CommandPath: c.path, Version: version, Data: map[string]any{},
				Warnings: []string{},
				Errors:   []EnvelopeFailure{failureOf(c, operation.FaultOf(err), requestID)},
			}
		},
	}
}

func failureOf(c toolCommand, f *operation.Fault, requestID string) EnvelopeFailure {
	out := EnvelopeFailure{Code: Code(f.Code), Message: f.Told(), Details: maps.Clone(f.Details)}
	if out.Details == nil {
		out.Details = map[string]any{}
	}
	if f.Code == "" {
		var next []string
		var why string
		out.Code, why, next = codeOfReason(f)
		out.Details["reason_code"], out.Details["next_actions"] = why, next
		if f.Reason == operation.ReasonApproval {
			out.Details["command"] = c.id
		}
	}
	if len(f.General.Violations) > 0 && f.Reason == operation.ReasonArguments {
		out.Details["violations"] = f.General.Violations
	}
	if requestID != "" {
		out.Details["request_id"] = requestID
	}
	return out
}

// codeOfReason returns the code for what a step of the call refused, with its reason_code and next_actions.
func codeOfReason(f *operation.Fault) (code Code, why string, next []string) {
	switch f.Reason {
	case operation.ReasonApproval:
		return ConfirmRequired, "confirm_required", []string{"retry_with_yes"}
	case operation.ReasonDisabled:
		return notAllowed, "toolset_disabled", []string{"ask_operator"}
	case operation.ReasonTier:
		return notAllowed, "tier_denied", []string{"ask_operator"}
	case operation.ReasonWriting:
		return notAllowed, "read_only", []string{"ask_operator"}
	case operation.ReasonArguments:
		for _, v := range f.General.Violations {
			if v.Path == "target" {
				return TargetUnsupported, "target_unsupported", []string{"fix_arguments", "retry_command"}
			}
		}
		return argumentsInvalid, "arguments_invalid", []string{"fix_arguments", "retry_command"}
	case operation.ReasonBusy:
		return Locked, "locked", []string{"retry_command"}
	case operation.ReasonTime:
		return timedOut, "timeout", []string{"retry_command"}
	case operation.ReasonSize:
		return answerTooLarge, "answer_too_large", []string{"retry_with_target"}
	}
	return Unexpected, "unexpected", []string{"retry_command"}
}

// Failure returns an error of this package in the program's own words, for people.
func Failure(err error) error { return faultOf(err) }

// faultOf returns an error of this package as the way of a call takes it.
func faultOf(err error) error {
	return operation.Contracted(err, general)
}

// general returns the program's own code for one of agentpack.
func general(c Code) fault.Code {
	switch c {
	case ConfirmRequired, argumentsInvalid, TargetUnsupported:
		return fault.InvalidArgument
	case ConfigMissing, SnapshotNotFound, FileUnknown:
		return fault.NotFound
	case ConfigInvalid, ConfigUnsupported, LockfileInvalid, LockfileUnsupported:
		return fault.Misconfigured
	case AdoptConfirmRequired, DesiredStateConflict, OverlayPatchFailed, Locked, PlanChanged, CheckoutNotReady:
		return fault.Conflict
	case PermissionDenied, SourceNotAllowed:
		return fault.ScopeDenied
	case GitFailed:
		return fault.UpstreamError
	case NothingToPropose:
		return fault.NoChange
	case notAllowed:
		return fault.ReadOnly
	}
	return fault.Internal
}

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"deploy plan":     "claudeops deploy plan\nclaudeops deploy plan --target codex",
		"deploy diff":     "claudeops deploy diff --target claude_code",
		"deploy status":   "claudeops deploy status\nclaudeops deploy status --only modified",
		"deploy doctor":   "claudeops deploy doctor",
		"deploy apply":    "claudeops deploy apply\nclaudeops deploy apply --yes --adopt",
		"deploy rollback": "claudeops deploy rollback --to 1795614482301445198",
		"deploy explain":  "claudeops deploy explain ~/.claude/skills/pdf/SKILL.md",
		"deploy propose":  "claudeops deploy propose ~/.claude/skills/pdf/SKILL.md",
		"deploy update":   "claudeops deploy update",
	}
}
