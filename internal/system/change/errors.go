package change

import (
	"errors"
	"fmt"
	"io/fs"
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

// Error is a failure with what the caller can do about it.
type Error struct {
	Code    Code
	Message string
	Details map[string]any
	Cause   error // for logs only
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// newError makes an Error. reason is its reason_code; next are its next_actions.
func newError(code Code, reason string, next []string, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...)}
	if reason != "" {
		e.Details = map[string]any{"reason_code": reason, "next_actions": next}
	}
	return e
}

// with adds a detail.
func (e *Error) with(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// because keeps the cause for logs.
func (e *Error) because(err error) *Error {
	e.Cause = err
	return e
}

// invalidConfig is a configuration that says something it may not.
func invalidConfig(format string, args ...any) *Error {
	return newError(ConfigInvalid, "config_invalid", []string{"fix_config", "retry_command"}, format, args...)
}

// reason is an error without the name of its file.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
