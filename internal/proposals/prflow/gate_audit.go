package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// auditGate denies every proposal while the heads of the audit cannot be exported, where the policy requires that they
// are (audit.require_sink). It asks before anything is written: the row of the proposal itself is exported after it.
func auditGate() gate {
	return gate{
		Name: record.GateAudit, Phase: phasePulls,
		Asks: "whether the audit was exported, where the policy requires it",
		Judge: func(ctx context.Context, on rules, _ *request, _ *evidence) (ruling, error) {
			switch {
			case !on.Policy.Server.RequireSink:
				return ruling{detail: "the policy requires no sink"}, nil
			case on.exported == nil:
				return deny(fault.New(fault.Misconfigured,
					"the policy requires a sink for the audit (audit.require_sink), and there is none")), nil
			}
			if err := on.exported(ctx); err != nil {
				if ctx.Err() != nil {
					return ruling{}, err
				}
				denial := *fault.From(err)
				denial.Message = "nothing is proposed, since the policy requires that the audit is exported " +
					"(audit.require_sink): " + denial.Message
				return deny(&denial), nil
			}
			return ruling{detail: "all of it was exported"}, nil
		},
	}
}
