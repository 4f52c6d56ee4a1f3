package definitions

import (
	"fmt"
)

// Code classifies an error, in the words of Forge's published contract.
type Code string

// The codes.
const (
	PluginNotFound   Code = "PLUGIN_NOT_FOUND"
	AgentNotFound    Code = "AGENT_NOT_FOUND"
	ToolNotFound     Code = "TOOL_NOT_FOUND"
	ValidationError  Code = "VALIDATION_ERROR"
	PermissionDenied Code = "PERMISSION_DENIED"
	NetworkError     Code = "NETWORK_ERROR"
	AuthRequired     Code = "AUTH_REQUIRED"
	AuthFailed       Code = "AUTH_FAILED"
	ConfigError      Code = "CONFIG_ERROR"
	IntegrityError   Code = "INTEGRITY_ERROR"
	DependencyError  Code = "DEPENDENCY_ERROR"
	ConflictError    Code = "CONFLICT_ERROR"
)

// Error is a failure with what the caller can do about it.
type Error struct {
	Code        Code
	Message     string
	Details     map[string]any
	Suggestions []string
	Cause       error // for logs only
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// newError makes an Error.
func newError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// with adds a detail.
func (e *Error) with(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// suggest adds what the caller can do.
func (e *Error) suggest(suggestions ...string) *Error {
	e.Suggestions = append(e.Suggestions, suggestions...)
	return e
}

// notFoundCode is the code for a definition of a kind that is not there.
func notFoundCode(kind Kind) Code {
	if kind == Tool {
		return ToolNotFound
	}
	return AgentNotFound
}
