package prflow

import (
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// Sizes of a page of attempts.
const (
	DefaultAttemptLimit = 50
	MaxAttemptLimit     = 200
)

// AttemptQuery selects attempts at proposals, newest first. The zero value is the newest page; every field that is set
// narrows it.
type AttemptQuery struct {
	Before int64 // rows with a lower number only; 0: no bound
	After  int64 // rows with a higher number only, and of those the ones nearest to it; 0: no bound
	Limit  int   // default DefaultAttemptLimit, at most MaxAttemptLimit

	Provider string
	Repo     string // owner/name, letter case aside
	Door     Door
	Caller   string
	Outcome  Outcome
	Code     fault.Code
	Session  string    // the agent's session
	Gate     Gate      // one that denied
	Pull     PullState // of the pull request that the attempt opened, as last seen; "" for attempts of any kind
	Since    time.Time // at this time or later
	Until    time.Time // before this time
	Search   string    // part of the title or of a path, letter case of ASCII aside
}

// RecordedAttempt is an attempt with its place in the audit.
type RecordedAttempt struct {
	Seq      int64 // from 1, without gaps
	PrevHash string
	Hash     string
	Attempt
	// State is that of the proposal which the attempt made; "" if it made none.
	State ProposalState
}

// GateCount is how often a gate has refused.
type GateCount struct {
	Gate  Gate
	Count int
}
