package deploy

import (
	"github.com/claudeops/claudeops/internal/base/contract"
	"github.com/claudeops/claudeops/internal/system/change"
)

// Code classifies an error, in agentpack's published words. E_LOCKED, E_PLAN_CHANGED, E_SNAPSHOT_NOT_FOUND,
// E_CHECKOUT_NOT_READY, E_SOURCE_NOT_ALLOWED, E_FILE_UNKNOWN, E_NOTHING_TO_PROPOSE, E_PROPOSAL_REFUSED
// and E_GIT_FAILED are ours.
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
	FileUnknown          Code = "E_FILE_UNKNOWN"
	NothingToPropose     Code = "E_NOTHING_TO_PROPOSE"
	ProposalRefused      Code = "E_PROPOSAL_REFUSED"
)

// Error is a failure in agentpack's words, the engine's included.
type Error = change.Error

// errorOf returns the failure that an error is of; nil if it is of none.
func errorOf(err error) *Error { return contract.Of[Code](err) }

// ioError gives an error of the file system its code; one that has a code keeps it.
func ioError(name string, err error) error {
	if errorOf(err) != nil {
		return err
	}
	return change.IOError(name, err)
}

// invalidConfig is the error for a configuration with an invalid value.
func invalidConfig(format string, args ...any) *Error {
	return change.NewError(ConfigInvalid, "config_invalid", []string{"fix_config", "retry_command"}, format, args...)
}
