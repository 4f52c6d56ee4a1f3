package packages

import (
	"errors"
	"fmt"
)

// Code classifies an error, in the words of AAM's published contract. Those from IntegrityError on are ours: the contract has none
// for these failures.
type Code string

// The codes.
const (
	InvalidArgument       Code = "AAM_INVALID_ARGUMENT"
	NotInitialized        Code = "AAM_NOT_INITIALIZED"
	ManifestNotFound      Code = "AAM_MANIFEST_NOT_FOUND"
	ManifestInvalid       Code = "AAM_MANIFEST_INVALID"
	RegistryNotConfigured Code = "AAM_REGISTRY_NOT_CONFIGURED"
	RegistryNotFound      Code = "AAM_REGISTRY_NOT_FOUND"
	RegistryUnreachable   Code = "AAM_REGISTRY_UNREACHABLE"
	PackageNotFound       Code = "AAM_PACKAGE_NOT_FOUND"
	PackageNotInstalled   Code = "AAM_PACKAGE_NOT_INSTALLED"
	DependencyConflict    Code = "AAM_DEPENDENCY_CONFLICT"
	PermissionDenied      Code = "AAM_PERMISSION_DENIED"
	InternalError         Code = "AAM_INTERNAL_ERROR"

	IntegrityError Code = "AAM_INTEGRITY_ERROR" // a checksum that differs, or an archive that breaks the rules
	VersionExists  Code = "AAM_VERSION_EXISTS"  // a version is published once
	NameConflict   Code = "AAM_NAME_CONFLICT"   // two packages want one name or one file, or a person has it
	ConfigInvalid  Code = "AAM_CONFIG_INVALID"  // a file of the configuration, or the lock file, cannot be used
	Busy           Code = "AAM_BUSY"            // another process writes the same workspace or registry
	LimitReached   Code = "AAM_LIMIT_REACHED"   // the answer would be too large, or the call took too long
)

// Error is a failure with what the caller can do about it.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Details map[string]any
	Cause   error // for logs only

	culprit string // the package that cannot be installed because of it; "" for none
}

// Error implements error in the contract's form.
func (e *Error) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

func newError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// hint says what the caller can do.
func (e *Error) hint(text string) *Error {
	e.Hint = text
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

// of names the package that cannot be installed.
func (e *Error) of(pkg string) *Error {
	e.culprit = pkg
	return e
}

// because keeps the cause for logs.
func (e *Error) because(err error) *Error {
	e.Cause = err
	return e
}

// asError is errors.As for an Error.
func asError(err error, into **Error) bool { return errors.As(err, into) }

// codeOfError is the code of an error; "" for nil and for errors of others.
func codeOfError(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
