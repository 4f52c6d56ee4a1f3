package packages

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// Failure is an error in structured content. Its text begins with the code in brackets, as the contract has it.
type Failure struct {
	Error Problem `json:"error"`
}

// Problem describes an error.
type Problem struct {
	Code      Code           `json:"code"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint,omitempty"`
	Details   map[string]any `json:"details,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
}

// form returns the form of the contract's answers and errors.
func form() *operation.Form {
	return &operation.Form{
		FailureType: reflect.TypeFor[Failure](),
		Failure: func(_ operation.Operation, err error, requestID string) any {
			return failureOf(operation.FaultOf(err), requestID)
		},
		Text: text,
	}
}

// text returns the text for a model: an error by its code, a list as a list.
func text(answer any) string {
	if f, ok := answer.(Failure); ok {
		return f.text()
	}
	if l, ok := answer.(operation.Bare); ok {
		list, notes := l.Bare()
		out := plain(list)
		for _, note := range notes {
			out += "\n" + note
		}
		return out
	}
	return plain(answer)
}

// plain is JSON without HTML escapes.
func plain(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // answers always marshal
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (f Failure) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s", f.Error.Code, f.Error.Message)
	if f.Error.Hint != "" {
		fmt.Fprintf(&b, "\nhint: %s", f.Error.Hint)
	}
	if len(f.Error.Details) > 0 {
		fmt.Fprintf(&b, "\ndetails: %s", plain(f.Error.Details))
	}
	if f.Error.RequestID != "" {
		fmt.Fprintf(&b, "\nrequest id: %s", f.Error.RequestID)
	}
	return b.String()
}

func failureOf(f *operation.Fault, requestID string) Failure {
	out := Problem{Code: Code(f.Code), Message: f.General.Message, Hint: strings.Join(f.Suggestions, "; "),
		RequestID: requestID}
	if len(f.Details) > 0 {
		out.Details = map[string]any{}
	}
	for key, value := range f.Details {
		out.Details[key] = value
	}
	if f.Code == "" {
		out.Code = codeOfReason(f)
	}
	if len(f.General.Violations) > 0 {
		if out.Details == nil {
			out.Details = map[string]any{}
		}
		out.Details["violations"] = f.General.Violations
	}
	return Failure{out}
}

// codeOfReason returns the code for what a step of the call refused.
func codeOfReason(f *operation.Fault) Code {
	switch f.Reason {
	case operation.ReasonDisabled, operation.ReasonTier, operation.ReasonWriting, operation.ReasonApproval:
		return PermissionDenied
	case operation.ReasonArguments:
		return InvalidArgument
	case operation.ReasonSize, operation.ReasonTime:
		return LimitReached
	case operation.ReasonBusy:
		return Busy
	}
	return InternalError
}

// faultOf returns an error of this package as the way of a call takes it.
func faultOf(err error) error {
	return operation.Contracted(err, Code.general)
}

// general returns the program's own code for one of the contract.
func (c Code) general() fault.Code {
	switch c {
	case InvalidArgument, ManifestInvalid:
		return fault.InvalidArgument
	case NotInitialized, ManifestNotFound, RegistryNotFound, RegistryNotConfigured, PackageNotFound, PackageNotInstalled:
		return fault.NotFound
	case RegistryUnreachable:
		return fault.UpstreamError
	case DependencyConflict, VersionExists, NameConflict, Busy:
		return fault.Conflict
	case PermissionDenied:
		return fault.ScopeDenied
	case IntegrityError:
		return fault.ContentDenied
	case ConfigInvalid:
		return fault.Misconfigured
	case LimitReached:
		return fault.LimitReached
	}
	return fault.Internal
}
