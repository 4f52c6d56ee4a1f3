package prflow

import (
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// afterProposal tells the caller whether to call again after a refused proposal, and with what. A model may see only
// the text of the refusal, so it must contain the next step.
func afterProposal(e *fault.Error) string {
	switch e.Code {
	case fault.DuplicatePR, fault.CooldownActive:
		if e.Existing != nil {
			return fmt.Sprintf("do not call again: report #%d; do not move the change elsewhere", e.Existing.Number)
		}
		return "do not call again: report it; do not move the change elsewhere"
	case fault.TierDenied:
		if final(e) {
			return "do not call again: report what should change and why, so that a session of a higher tier or a person " +
				"takes it up"
		}
		return "propose fewer files that belong together in one more call, or report the whole change; no call can raise the tier"
	case fault.ScopeDenied:
		return "leave these paths out and call once more, or report the change to a person; do not put it into another file"
	case fault.Conflict:
		if final(e) {
			return "do not call again: report what should change and why, for a person to take up"
		}
		return "make the change again from what is there now, and call once more"
	case fault.NoChange:
		return "leave out what is listed and call once more with the rest; if nothing is left, report that it is done already"
	case fault.LimitReached:
		if final(e) { // waiting does not help
			return "do not call again: report what is still asked for, for a person to take up"
		}
		return "do not wait in this session: report the change and that pull requests wait for review; the identical call " +
			"is safe later"
	case fault.UpstreamError, fault.Timeout:
		return "the identical call is safe: it returns the pull request if it was opened; if it fails again, report it"
	case fault.Internal:
		return "look at list_prs whether it was opened; the identical call is safe, once; then report the request id"
	}
	return afterReading(e)
}

// afterReading is afterProposal for refused reads.
func afterReading(e *fault.Error) string {
	switch e.Code {
	case fault.InvalidArgument, fault.ContentDenied:
		return "correct everything that is listed and call once more; the same call is refused again"
	case fault.ReadOnly:
		return "do not call again: report what should change and why, for a person to take up"
	case fault.RepoNotAllowed:
		if !final(e) && len(e.Violations) > 0 {
			return "correct what is listed and call once more"
		}
		return "do not call again: report it to the operator"
	case fault.NotFound:
		return "correct what the message names and call once more; if it is right as it is, report that it cannot be seen"
	case fault.ProviderUnresolved:
		return "call once more as the message says; if it offers nothing, report it to the operator"
	case fault.Unauthenticated, fault.Forbidden:
		return "do not call again: report that this credential lets nobody in any more"
	case fault.RateLimited:
		return "the identical call is safe after that time; if the session ends before, report it"
	case fault.ProviderDisabled, fault.Misconfigured:
		return "do not call again: report to the operator what the message names"
	case fault.UpstreamError, fault.Timeout:
		return "the identical call is safe; if it fails again, report it"
	case fault.Internal:
		return "the identical call is safe, once; then report the request id"
	}
	return ""
}

// final reports whether the refusal has something that no change of the call corrects.
func final(e *fault.Error) bool {
	return slices.ContainsFunc(e.Violations, func(v fault.Violation) bool { return v.Final })
}
