package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Ledger is the memory that all doors share. internal/store implements it. Methods return *fault.Error with the code
// internal when the store cannot be opened, read or written; the message says what the operator has to do.
type Ledger interface {
	// Opened returns the proposals that reached a pull request for the change with this digest, newest first, at most
	// 20. Whether the pull request is still open only the provider knows.
	Opened(ctx context.Context, digest string) ([]Proposal, error)

	// Reserve records the proposal, state StateReserved, before its first remote write, and takes the paths of its
	// repository, all of them or none. If a live reservation of another proposal holds one of the paths, or a proposal
	// on one of them was opened after since (so that the caller's view of the provider missed it), nothing is recorded
	// and that proposal is returned: the caller lost a race, or found what a killed process left.
	Reserve(ctx context.Context, p Proposal, since time.Time) (taken *Proposal, err error)

	// Advance records a step of a reserved proposal. It fails if the proposal is not reserved any more.
	Advance(ctx context.Context, id string, to Progress) error

	// Finish ends a reserved proposal in to.State, releases its paths and appends the attempt to the audit, all or
	// nothing.
	Finish(ctx context.Context, id string, to Progress, a Attempt) error

	// Record appends an attempt that never held a reservation to the audit: a refusal, a reused pull request, a dry run.
	// dryRun, if not nil, is recorded as a proposal in the same transaction, so that a person can look at it.
	Record(ctx context.Context, a Attempt, dryRun *Proposal) error
}

// ProposalState is how far a proposal got.
type ProposalState string

// The states of a proposal. Reserved, committed and unsettled ones hold their
// paths; the others are final.
const (
	StateReserved  ProposalState = "reserved"  // intent recorded, nothing written remotely as far as we know
	StateCommitted ProposalState = "committed" // branch and commit exist
	StateUnsettled ProposalState = "unsettled" // its process gave up and could not see or undo what it had written
	StateOpened    ProposalState = "opened"    // the pull request exists
	StateFailed    ProposalState = "failed"    // ended without a pull request, and without a branch of ours
	StateDryRun    ProposalState = "dry_run"   // never meant to be written
)

// Proposal is a change that passed the gates.
type Proposal struct {
	ID         string // the request id
	CreatedAt  time.Time
	Door       Door
	Caller     string
	Tier       gitprovider.Tier
	Provider   string
	Owner      string // as the provider spells it
	Repo       string
	Base       string
	BaseCommit string
	ChangeType gitprovider.ChangeType
	Title      string
	Body       string
	Files      []gitprovider.FileChange // sorted by path
	Digest     string                   // of provider, repository, base and files; see changeDigest
	Progress
}

// Progress is the part of a proposal that changes as it proceeds. In a call to Advance or Finish, empty fields other
// than State leave what is recorded.
type Progress struct {
	State    ProposalState
	Branch   string
	Commit   string
	PRNumber int
	PRURL    string
}

// Door is the way by which an attempt came in.
type Door string

// The doors.
const (
	DoorMCP  Door = "mcp"
	DoorREST Door = "rest"
	DoorCLI  Door = "cli"
	DoorWeb  Door = "web"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt.
const (
	OutcomeOpened  Outcome = "opened"
	OutcomeReused  Outcome = "reused"
	OutcomeDryRun  Outcome = "dry_run"
	OutcomeRefused Outcome = "refused" // by a gate
	OutcomeFailed  Outcome = "failed"  // by a fault: provider, store, cancellation
	OutcomeDone    Outcome = "done"    // a person's review, merge or close
)

// Attempt is one line of the audit. It never holds file contents, a body, or anything that a content rule matched.
type Attempt struct {
	Time      time.Time
	RequestID string
	Door      Door
	Caller    string // the client as it names itself, or the operating system's user; untrusted text
	Tier      gitprovider.Tier
	Action    string // "create_pr", "review.merge", ...
	Provider  string
	Owner     string
	Repo      string
	Base      string
	Branch    string
	Title     string
	Paths     []string
	Digest    string
	Verdicts  []Verdict
	Outcome   Outcome
	Code      fault.Code // "" on success
	Message   string
	PRNumber  int
	PRURL     string
	Duration  time.Duration
}
