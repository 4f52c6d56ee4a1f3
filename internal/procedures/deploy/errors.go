package deploy

import (
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/system/change"
)

// Code classifies an error, in agentpack's published words. E_LOCKED, E_PLAN_CHANGED, E_SNAPSHOT_NOT_FOUND,
// E_CHECKOUT_NOT_READY, E_SOURCE_NOT_ALLOWED and E_GIT_FAILED are ours.
type Code = change.Code

// The codes.
const (
	ConfirmRequired      Code = "E_CONFIRM_REQUIRED"
	AdoptConfirmRequired      = change.AdoptConfirmRequired
	ConfigMissing        Code = "E_CONFIG_MISSING"
	ConfigInvalid             = change.ConfigInvalid
	ConfigUnsupported    Code = "E_CONFIG_UNSUPPORTED_VERSION"
	TargetUnsupported    Code = "E_TARGET_UNSUPPORTED"
	DesiredStateConflict      = change.DesiredStateConflict
	OverlayPatchFailed   Code = "E_OVERLAY_PATCH_APPLY_FAILED"
	LockfileInvalid      Code = "E_LOCKFILE_INVALID"
	LockfileUnsupported  Code = "E_LOCKFILE_UNSUPPORTED_VERSION"
	PermissionDenied          = change.PermissionDenied
	Unexpected                = change.Unexpected
	SnapshotNotFound          = change.SnapshotNotFound
	GitFailed            Code = "E_GIT_FAILED"
	CheckoutNotReady     Code = "E_CHECKOUT_NOT_READY"
	Locked                    = change.Locked
	PlanChanged               = change.PlanChanged
	SourceNotAllowed     Code = "E_SOURCE_NOT_ALLOWED"
)

// Error is a failure with what the caller can do about it.
type Error change.Error

// Error implements error.
func (e *Error) Error() string { return (*change.Error)(e).Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// errorOf is the failure that an error is of, the engine's included; nil if it is of none.
func errorOf(err error) *Error {
	var e *Error
	var of *change.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &of):
		return (*Error)(of)
	}
	return nil
}

// newError makes an Error. reason is its reason_code; next are its next_actions.
func newError(code Code, reason string, next []string, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...)}
	if reason != "" {
		e.Details = map[string]any{"reason_code": reason, "next_actions": next}
	}
	return e
}

// ioError gives an error of the file system its code; one that has a code keeps it.
func ioError(name string, err error) error {
	if errorOf(err) != nil {
		return err
	}
	return change.IOError(name, err)
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
