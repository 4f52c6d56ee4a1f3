package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// scopeGate denies paths that are outside of the policy's scope or not in canonical form; gitprovider.NewChangeSet has the
// rule.
func scopeGate() gate {
	return gate{
		Name: record.GateScope, Phase: phaseRequest,
		Asks: "whether each path is canonical and in the scope",
		Judge: func(_ context.Context, _ rules, r *request, _ *evidence) (ruling, error) {
			return ruling{
				skipped:    len(r.asked.Files) == 0,
				violations: r.excludedFor(func(c fault.Code) bool { return c != fault.TierDenied }),
			}, nil
		},
	}
}
