package definitions

import "github.com/claudeops/claudeops/internal/base/contract"

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

// Error is a failure in the words of Forge's contract.
type Error = contract.Error[Code]

func newError(code Code, format string, args ...any) *Error {
	return contract.New(code, format, args...)
}

// notFoundCode returns the code for a definition of a kind that is not there.
func notFoundCode(kind Kind) Code {
	if kind == Tool {
		return ToolNotFound
	}
	return AgentNotFound
}
