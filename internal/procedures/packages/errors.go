package packages

import (
	"errors"

	"github.com/claudeops/claudeops/internal/base/contract"
)

// Code classifies an error, in the words of AAM's published contract. Those from IntegrityError on are ours: the
// contract has none for these failures.
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

// Error is a failure in the words of AAM's contract.
type Error = contract.Error[Code]

func newError(code Code, format string, args ...any) *Error {
	return contract.New(code, format, args...)
}

// asError is errors.As for an Error.
func asError(err error, into **Error) bool { return errors.As(err, into) }

// codeOfError returns the code of an error; "" for nil and for errors of others.
func codeOfError(err error) Code {
	if e := contract.Of[Code](err); e != nil {
		return e.Code
	}
	return ""
}

// culpritError is a failure because of which one package cannot be installed.
type culpritError struct {
	error
	pkg string
}

// Unwrap gives the failure.
func (e *culpritError) Unwrap() error { return e.error }

// blame says which package cannot be installed because of a failure.
func blame(err error, pkg string) error { return &culpritError{err, pkg} }
