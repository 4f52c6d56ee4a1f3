package prflow

import (
	"github.com/claudeops/claudeops/internal/records/record"
)

// gates lists them in their order. Whatever walks through the gates walks through this list: the pipeline, the verdicts
// in answers and records, the filters of the dashboard and docs/explain/gates.md.
func gates() []gate {
	return []gate{
		argumentsGate(), tierGate(), scopeGate(), baseTreeGate(), contentGate(), repositoryGate(), revisionGate(),
		duplicateGate(), cooldownGate(), auditGate(), capsGate(),
	}
}

// Gates returns the names of the gates in their order.
func Gates() []record.Gate {
	var out []record.Gate
	for _, g := range gates() {
		out = append(out, g.Name)
	}
	return out
}
