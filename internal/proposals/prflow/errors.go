package prflow

import (
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// asked returns a failure as the kernel takes it. Reads that the operator's rules refuse have a row in the audit.
func asked(err error) error {
	if err == nil {
		return nil
	}
	f := &operation.Fault{General: fault.From(err)}
	switch f.General.Code {
	case fault.ScopeDenied, fault.TierDenied, fault.RepoNotAllowed:
		f.Reason = operation.ReasonRules
	}
	return f
}

func invalid(argument, message, suggestion string) fault.Violation {
	return fault.Violation{Code: fault.InvalidArgument, Path: argument, Message: message, Suggestion: suggestion}
}
