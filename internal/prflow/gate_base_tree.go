package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/record"
)

// baseTreeGate denies what does not fit the base commit; gitprovider.Tree.Mismatch has the rule, which every Commit asks again.
func baseTreeGate() gate {
	return gate{
		Name: record.GateBaseTree, Phase: phaseRepository,
		Asks:  "whether each file is there or not as its action says, is a plain file, and would change",
		Judge: judgeBaseTree,
	}
}

func judgeBaseTree(_ context.Context, on rules, r *request, e *evidence) (ruling, error) {
	if e.snapshot == nil {
		return ruling{skipped: true}, nil
	}
	out := ruling{detail: "base " + e.snapshot.Base + " at " + short(e.snapshot.BaseCommit)}
	for _, change := range r.inScope(on.Policy.Scope) {
		if v := e.snapshot.Tree.Mismatch(change); v != nil {
			out.violations = append(out.violations, *v)
		}
	}
	return out, nil
}

// short is a commit for people.
func short(commit string) string { return commit[:min(len(commit), 12)] }
