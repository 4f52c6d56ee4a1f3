package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// tierGate denies what the configured tier may not do; gitprovider.NewChangeSet has the rule.
func tierGate() gate {
	return gate{
		Name: record.GateTier, Phase: phaseRequest,
		Asks: "whether the configured tier may propose, and so many files",
		Judge: func(_ context.Context, on rules, r *request, _ *evidence) (ruling, error) {
			return ruling{
				skipped: len(r.asked.Files) == 0, detail: "tier " + on.Tier.String(),
				violations: r.excludedFor(func(c fault.Code) bool { return c == fault.TierDenied }),
			}, nil
		},
	}
}
