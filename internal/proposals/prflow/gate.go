package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/records/record"
)

// gate is one rule that a proposal has to pass. Judge takes the request and what was read, and writes nothing; an error
// says that it could not be judged, and then nothing is proposed.
type gate struct {
	Name  record.Gate
	Phase phase
	Asks  string // what it looks at, for people; docs/explain/gates.md has it
	Judge func(ctx context.Context, on rules, r *request, e *evidence) (ruling, error)
}

// phase says what a gate needs to have been read. The phases follow one another.
type phase string

const (
	// judged together with the next phase: a refusal lists all violations
	phaseRequest    phase = "the request alone"
	phaseRepository phase = "a snapshot of the base branch"     // likewise
	phasePulls      phase = "the open and closed pull requests" // one by one: the first that denies is the answer
	phaseReserve    phase = "the transaction that reserves"     // in a dry run, what is recorded now
)
