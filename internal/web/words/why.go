package words

import (
	"cmp"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Code says why something was refused or failed, as a heading; "" for "".
func Code(c fault.Code) string {
	return cmp.Or(codes()[c], strings.ReplaceAll(string(c), "_", " "))
}

func codes() map[fault.Code]string {
	return map[fault.Code]string{
		"":                       "",
		fault.InvalidArgument:    "Not understood",
		fault.Unauthenticated:    "Not signed in",
		fault.Forbidden:          "Not permitted",
		fault.TierDenied:         "Tier may not",
		fault.ScopeDenied:        "File is protected",
		fault.ContentDenied:      "Looks like a secret",
		fault.RepoNotAllowed:     "Repository not on the list",
		fault.ReadOnly:           "Read-only",
		fault.NotFound:           "Not there",
		fault.ProviderUnresolved: "No forge fits",
		fault.DuplicatePR:        "Already open",
		fault.Conflict:           "The file has moved on",
		fault.NoChange:           "Nothing would change",
		fault.CooldownActive:     "Cooling down",
		fault.LimitReached:       "Limit reached",
		fault.RateLimited:        "The forge asks to wait",
		fault.ProviderDisabled:   "Forge is off",
		fault.Misconfigured:      "Not set up right",
		fault.UpstreamError:      "The forge failed",
		fault.Timeout:            "No answer in time",
		fault.Internal:           "Our fault",
	}
}

// Violation is the code of a broken rule, told apart further by the rule.
func Violation(v fault.Violation) string {
	if v.Code != fault.ContentDenied {
		return Code(v.Code)
	}
	switch {
	case strings.HasSuffix(v.Rule, "-size"):
		return "Too large"
	case v.Rule == "hidden-character":
		return "Hidden characters"
	case v.Rule == "binary":
		return "Not text"
	case strings.HasPrefix(v.Rule, "kind:"):
		return "Not a valid file of its kind"
	}
	return Code(v.Code)
}

// Refusal is why an attempt was refused or failed: its code, told apart further by the first rule that was broken.
func Refusal(a record.Attempt) string {
	for _, verdict := range a.Verdicts {
		for _, v := range verdict.Violations {
			if v.Code == a.Code {
				return Violation(v)
			}
		}
	}
	return Code(a.Code)
}

// Gate is the name of one of our checks.
func Gate(g record.Gate) string {
	names := map[record.Gate]string{
		record.GateArguments: "Request", record.GateTier: "Tier", record.GateScope: "Protected files",
		record.GateBaseTree: "Present files",
		record.GateContent:  "Contents", record.GateRepository: "Repository", record.GateRevision: "Revision",
		record.GateDuplicate: "Already open",
		record.GateCooldown:  "Cooling down", record.GateAudit: "Record", record.GateCaps: "Limits",
	}
	return cmp.Or(names[g], unknown(string(g)).Text)
}

// Action is what somebody did, before its object: "Merged" before a title.
func Action(a string) string {
	return cmp.Or(actions()[a], unknown(strings.NewReplacer(".", ": ", "-", " ").Replace(a)).Text)
}

func actions() map[string]string {
	return map[string]string{
		record.ActionCreate:       "Proposed",
		record.ActionPromote:      "Opened the dry run",
		record.ActionSettle:       "Settled",
		"create_pr.resume":        "Settled what was left",
		record.ActionPullMerged:   "Saw merged",
		record.ActionPullClosed:   "Saw closed",
		record.ActionPullReopened: "Saw reopened",
		record.ActionPullGone:     "No longer found",
		record.ActionPullFound:    "Found again",
		record.ActionDeployMerge:  "Deployed after the merge",
		record.ActionReviewMerge:  "Merged",
		"review.approve":          "Approved",
		"review.close":            "Closed",
		"review.comment":          "Commented on",
		"review.request-changes":  "Asked for changes to",
		"review.lift-cooldown":    "Lifted the cooldown of",
		"session.start":           "Started a session",
		"session.stop":            "Stopped a session",
		"token.create":            "Made a token",
		"token.revoke":            "Revoked a token",
		"connection.cut":          "Cut off an agent",
		"connect":                 "Connected",
		access.ActionSignIn:       "Signed in",
		access.ActionEnd:          "Was signed out",
		"source.allow":            "Allowed a source",
		"source.remove":           "Removed a source",
		"deploy.rollback":         "Rolled back",
		"packages.registry_init":  "Made a registry",
		"prune":                   "Removed what was old",
		"read_file":               "Read a file",
		"read_pr_diff":            "Read a difference",
	}
}
