package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// tierGate denies what the configured tier may not do; gitprovider.NewChangeSet has the rule.
func tierGate() gate {
	return gate{
		Name: record.GateTier, Phase: phaseRequest,
		Asks: "whether the configured tier may propose, and so many files",
		Judge: func(_ context.Context, on rules, r *request, _ *evidence) (ruling, error) {
			out := ruling{skipped: len(r.asked.Files) == 0, detail: "tier " + on.Tier.String()}
			out.violations = r.excludedFor(func(c fault.Code) bool { return c == fault.TierDenied })
			if r.asked.repliesOnly() {
				out.skipped, out.violations = false, gitprovider.ValidateTier(on.Policy.Tiers, on.Tier, 0)
			}
			return out, nil
		},
	}
}
