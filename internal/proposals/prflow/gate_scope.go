package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// noPath stands for an empty path in a violation.
const noPath = `""`

// scopeGate denies paths that are outside of the policy's scope or not in canonical form; gitprovider.NewChangeSet has
// the rule.
func scopeGate() gate {
	return gate{
		Name: record.GateScope, Phase: phaseRequest,
		Asks: "whether each path is canonical and in the scope",
		Judge: func(_ context.Context, _ rules, r *request, _ *evidence) (ruling, error) {
			out := ruling{skipped: len(r.asked.Files) == 0}
			for _, v := range r.excludedFor(func(c fault.Code) bool { return c != fault.TierDenied }) {
				if v.Path != noPath { // the gate of the arguments has said so
					out.violations = append(out.violations, v)
				}
			}
			return out, nil
		},
	}
}
