package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/records/record"
)

// argumentsGate denies what is malformed. Reading the request finds that; see newRequest.
func argumentsGate() gate {
	return gate{
		Name: record.GateArguments, Phase: phaseRequest,
		Asks: "shape, lengths, known values, sections that the policy requires",
		Judge: func(_ context.Context, _ rules, r *request, _ *evidence) (ruling, error) {
			return ruling{violations: r.malformed}, nil
		},
	}
}
