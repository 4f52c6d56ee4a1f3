package prflow

import "github.com/claudeops/claudeops/internal/record"

// Gates returns the gates in their order.
func Gates() []record.Gate {
	return []record.Gate{
		record.GateArguments, record.GateTier, record.GateScope, record.GateBaseTree, record.GateContent, record.GateRepository,
		record.GateDuplicate, record.GateCooldown, record.GateCaps,
	}
}
