package definitions

import (
	"errors"
	"reflect"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// internalError is the one code that the contract does not have: a fault of this program.
const internalError Code = "INTERNAL_ERROR"

// Failure is an error as the contract has it.
type Failure struct {
	Error       bool           `json:"error"`
	Code        Code           `json:"code"`
	Message     string         `json:"message"`
	Details     map[string]any `json:"details"`
	Suggestions []string       `json:"suggestions"`
}

// form returns the form of the contract's errors.
func form() *operation.Form {
	return &operation.Form{
		FailureType: reflect.TypeFor[Failure](),
		Failure: func(_ operation.Operation, err error, requestID string) any {
			return failureOf(operation.FaultOf(err), requestID)
		},
	}
}

func failureOf(f *operation.Fault, requestID string) Failure {
	out := Failure{Error: true, Code: Code(f.Code), Message: f.General.Message, Details: map[string]any{},
		Suggestions: []string{}}
	for key, value := range f.Details {
		out.Details[key] = value
	}
	out.Suggestions = append(out.Suggestions, f.Suggestions...)
	if f.Code == "" {
		out.Code = codeOfReason(f)
	}
	if len(f.General.Violations) > 0 {
		out.Details["violations"] = f.General.Violations
		for _, v := range f.General.Violations {
			if v.Suggestion != "" {
				out.Suggestions = append(out.Suggestions, v.Suggestion)
			}
		}
	}
	if requestID != "" {
		out.Details["request_id"] = requestID
	}
	return out
}

// codeOfReason returns the contract's code for what a step of the call refused.
func codeOfReason(f *operation.Fault) Code {
	switch f.Reason {
	case operation.ReasonDisabled, operation.ReasonTier, operation.ReasonWriting, operation.ReasonApproval:
		return PermissionDenied
	case operation.ReasonArguments, operation.ReasonSize:
		return ValidationError
	case operation.ReasonBusy:
		return ConflictError
	case operation.ReasonTime:
		return NetworkError
	}
	if f.General.Code == fault.Misconfigured {
		return ConfigError
	}
	return internalError
}

// faultOf returns an error of this package as the way of a call takes it.
func faultOf(err error) error {
	var missing *notFoundError
	var limit *limitError
	switch {
	case errors.As(err, &missing):
		err = missing.coded()
	case errors.As(err, &limit):
		err = newError(ValidationError, "%s", limit.Error())
	}
	return operation.Contracted(err, Code.general)
}

// general returns the program's own code for one of the contract.
func (c Code) general() fault.Code {
	switch c {
	case PluginNotFound, AgentNotFound, ToolNotFound:
		return fault.NotFound
	case ValidationError:
		return fault.InvalidArgument
	case PermissionDenied:
		return fault.ScopeDenied
	case NetworkError, AuthFailed:
		return fault.UpstreamError
	case AuthRequired:
		return fault.ProviderDisabled
	case ConfigError:
		return fault.Misconfigured
	case IntegrityError:
		return fault.ContentDenied
	case DependencyError, ConflictError:
		return fault.Conflict
	}
	return fault.Internal
}
