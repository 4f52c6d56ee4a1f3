package deploy

import (
	"maps"
	"reflect"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

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

// command identifies a tool by the names of agentpack's command line.
type command struct {
	name string
	id   string
	path []string
}

func commandOf(tool string) command {
	if tool == ToolApply {
		return command{"deploy", "deploy --apply", []string{"deploy", "--apply"}}
	}
	tool = strings.TrimPrefix(tool, "deploy_") // of those that are not in the contract
	return command{tool, tool, []string{tool}}
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

// form returns the form of agentpack's answers.
func form(version string) *operation.Form {
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

func failureOf(c command, f *operation.Fault, requestID string) EnvelopeFailure {
	out := EnvelopeFailure{Code: Code(f.Code), Message: f.General.Message, Details: maps.Clone(f.Details)}
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
