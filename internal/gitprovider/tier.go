package gitprovider

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Tier is the permission tier that configuration gives to an agent. It never comes from a request.
type Tier int

// The tiers. Tier 1 may look, tier 2 may propose small changes, tier 3 larger ones.
const (
	TierObserve     Tier = 1
	TierInvestigate Tier = 2
	TierRemediate   Tier = 3
)

// ParseTier reads a configured tier. Everything that is not exactly 1, 2 or 3, surrounded by spaces at most, is tier 1:
// a mistake in the configuration must never widen what an agent may do. ok is false when the value was not empty and
// not a tier.
func ParseTier(s string) (tier Tier, ok bool) {
	s = strings.TrimSpace(s)
	switch s {
	case "1", "2", "3":
		return Tier(s[0] - '0'), true
	}
	return TierObserve, s == ""
}

// String returns the tier's number.
func (t Tier) String() string { return strconv.Itoa(int(t)) }

// MaxFilesPerPR is the absolute cap of files in one pull request, for every tier.
const MaxFilesPerPR = 100

// MaxFilesTier2 is the number of files that tier 2 may touch in one pull request (design §3, gate 2).
const MaxFilesTier2 = 3

// TierLimits holds the largest number of files that each tier may propose in one pull request. Zero means that the
// tier may not propose.
type TierLimits struct{ Investigate, Remediate int }

// DefaultTierLimits returns the limits of the embedded policy. They are also upper bounds: a policy can only lower
// them.
func DefaultTierLimits() TierLimits {
	return TierLimits{Investigate: MaxFilesTier2, Remediate: MaxFilesPerPR}
}

// MaxFiles returns the largest number of files that tier t may propose; 0 for tier 1 and for invalid values.
func (l TierLimits) MaxFiles(t Tier) int {
	switch t {
	case TierInvestigate:
		return min(l.Investigate, MaxFilesTier2)
	case TierRemediate:
		return min(l.Remediate, MaxFilesPerPR)
	default:
		return 0
	}
}

// ValidateTier checks that the tier may propose a change of the given number of files. It returns every violation; the
// message says which tier may.
func ValidateTier(limits TierLimits, tier Tier, files int) []fault.Violation {
	limit := limits.MaxFiles(tier)
	switch {
	case limit <= 0:
		return []fault.Violation{{
			Code: fault.TierDenied, Rule: "tier-may-propose", Final: true,
			Message:    fmt.Sprintf("tier %d may not propose changes; %s may", tier, limits.proposers()),
			Suggestion: "describe the wanted change in your report, so that a higher tier or a person takes it up",
		}}
	case files > limit:
		return []fault.Violation{{
			Code: fault.TierDenied, Rule: "tier-max-files",
			Message: fmt.Sprintf("tier %d may change at most %s in one pull request, this one has %d%s",
				tier, fault.CountFiles(limit), files, limits.whoMay(files)),
			Suggestion: fmt.Sprintf("propose at most %s that belong together, or escalate", fault.CountFiles(limit)),
		}}
	}
	return nil
}

func (l TierLimits) proposers() string {
	var who []string
	for _, t := range []Tier{TierInvestigate, TierRemediate} {
		if l.MaxFiles(t) > 0 {
			who = append(who, "tier "+t.String())
		}
	}
	if len(who) == 0 {
		return "no tier"
	}
	return strings.Join(who, " and ")
}

func (l TierLimits) whoMay(files int) string {
	if files <= l.MaxFiles(TierRemediate) {
		return fmt.Sprintf("; tier 3 may change up to %d", l.MaxFiles(TierRemediate))
	}
	return "; no tier may change so many"
}

// Rules limits what this process may propose, by the operator's configuration.
type Rules struct {
	Tier   Tier
	Limits TierLimits
	Scope  Scope
}

// NewChangeSet runs ValidateTier and ValidateScope, and makes a ChangeSet only if neither finds anything. files is
// checked for nothing else here: actions, sizes and contents are other gates' business.
func NewChangeSet(rules Rules, files []FileChange) (ChangeSet, []fault.Violation) {
	violations := ValidateTier(rules.Limits, rules.Tier, len(files))
	violations = append(violations, ValidateScope(rules.Scope.At(rules.Tier), files)...)
	if len(files) == 0 {
		violations = append(violations, fault.Violation{
			Code: fault.InvalidArgument, Path: "files", Message: "`files` is empty", Suggestion: "name at least one file",
		})
	}
	if len(violations) > 0 {
		return ChangeSet{}, violations
	}
	changes := make([]Change, len(files))
	for i, f := range files {
		p, err := ParsePath(f.Path)
		if err != nil { // ValidateScope accepted it, so this is a fault of ours, and must not pass
			return ChangeSet{}, []fault.Violation{{Code: fault.Internal, Path: f.Path, Message: err.Error()}}
		}
		changes[i] = Change{Path: p, Action: f.Action, Content: f.Content}
	}
	return newChangeSet(changes), nil
}
