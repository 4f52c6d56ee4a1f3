package change

import (
	"errors"
	"io/fs"

	"github.com/claudeops/claudeops/internal/base/contract"
)

// Code classifies an error, in agentpack's published words. E_LOCKED, E_PLAN_CHANGED and E_SNAPSHOT_NOT_FOUND are ours.
type Code string

// The codes of this package.
const (
	AdoptConfirmRequired Code = "E_ADOPT_CONFIRM_REQUIRED"
	ConfigInvalid        Code = "E_CONFIG_INVALID"
	DesiredStateConflict Code = "E_DESIRED_STATE_CONFLICT"
	PermissionDenied     Code = "E_IO_PERMISSION_DENIED"
	Unexpected           Code = "E_UNEXPECTED"
	SnapshotNotFound     Code = "E_SNAPSHOT_NOT_FOUND"
	Locked               Code = "E_LOCKED"
	PlanChanged          Code = "E_PLAN_CHANGED"
)

// Error is a failure in agentpack's words. Its Details say what the caller can do: a reason_code, and next_actions.
type Error = contract.Error[Code]

// NewError makes an Error. reason is its reason_code; next are its next_actions.
func NewError(code Code, reason string, next []string, format string, args ...any) *Error {
	e := contract.New(code, format, args...)
	if reason != "" {
		e.Details = map[string]any{"reason_code": reason, "next_actions": next}
	}
	return e
}

// invalidConfig is the error for a configuration with an invalid value.
func invalidConfig(format string, args ...any) *Error {
	return NewError(ConfigInvalid, "config_invalid", []string{"fix_config", "retry_command"}, format, args...)
}

// reason returns an error without the name of its file.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
