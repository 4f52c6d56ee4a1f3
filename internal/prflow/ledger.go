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
	// Reserve records the proposal, state StateReserved, before its first remote write, and takes the paths of its
	// repository, all of them or none; letter case does not tell paths apart. If a live reservation of another proposal
	// holds one of the paths, or a proposal on one of them was recorded as opened after the claim's position (so that the
	// caller's view of the provider may have missed it), nothing is recorded and that proposal is returned: the caller
	// lost a race, or found what a killed process left. Otherwise the claim's caps are asked, in the same transaction; if
	// they deny, nothing is recorded and theirs is the error.
	Reserve(ctx context.Context, p Proposal, claim Claim) (taken *Proposal, err error)

	// Advance records a step of a reserved proposal. conflict if it is not reserved any more: another process settled it.
	Advance(ctx context.Context, id string, to Progress) error

	// Finish ends a reserved proposal in to.State, releases its paths and appends the attempt to the audit, all or
	// nothing. conflict as with Advance; the attempt is then not recorded. The notices go to the outbox in the same
	// transaction.
	Finish(ctx context.Context, id string, to Progress, a Attempt, notices ...Notice) error

	// Adopt makes this process the holder of a proposal that another one has abandoned or left unsettled, so that only one
	// settles it. left is as the store handed it out; ok is false if anything about it has changed since: somebody else
	// has adopted or ended it. From then on the former holder's Advance and Finish are conflicts.
	Adopt(ctx context.Context, left Proposal) (ok bool, err error)

	// Supersede replaces a proposal that another process has abandoned or left unsettled by one of the same files: left
	// ends as failed with the attempt in the audit, and next is reserved with its paths, all or nothing. left and ok are as
	// with Adopt.
	Supersede(ctx context.Context, left, next Proposal, a Attempt) (ok bool, err error)

	// Record appends an attempt that never held a reservation to the audit: a refusal, a reused pull request, a dry run.
	// dryRun, if not nil, is recorded as a proposal in the same transaction, so that a person can look at it; the notices
	// go to the outbox.
	Record(ctx context.Context, a Attempt, dryRun *Proposal, notices ...Notice) error
}

// History answers questions about the past. internal/store implements it, with the errors of Ledger.
type History interface {
	// Position is where the record stands now.
	Position(ctx context.Context) (Position, error)

	// ByDigest returns the proposals of the change with this digest that reached a pull request or may have, newest
	// first, at most 20: opened ones and those that still hold a reservation. Whether a pull request is still open only
	// the provider knows.
	ByDigest(ctx context.Context, digest string) ([]Proposal, error)

	// Usage counts as Reserve does, for whoever reserves nothing.
	Usage(ctx context.Context, provider, owner, repo string, claim Claim) (Usage, error)

	// Unfinished returns the proposals that still hold a reservation, oldest first, at most 1000.
	Unfinished(ctx context.Context) ([]Proposal, error)

	// Undone reports whether we have begun to remove what the proposal with this request id had written; see
	// Progress.Undone. false for one that the ledger does not know.
	Undone(ctx context.Context, id string) (bool, error)

	// UndoneBranches returns the branches of the repository's proposals that we have begun to remove at or after since.
	UndoneBranches(ctx context.Context, provider, owner, repo string, since time.Time) ([]string, error)

	// PathsOf returns the paths of the proposal that became the pull request with this number, sorted; none if the
	// ledger does not know it.
	PathsOf(ctx context.Context, provider, owner, repo string, number int) ([]string, error)
}

// Notice is something that people may want to hear of. It waits in the store's outbox until a sender of
// internal/notify has delivered it.
type Notice struct {
	Event   Event
	Payload []byte // a JSON object; see internal/notify
}

// Event is the kind of a Notice.
type Event string

// The events.
const (
	EventOpened  Event = "opened"
	EventRefused Event = "refused" // only if the operator asks for it
	EventMerged  Event = "merged"
	EventClosed  Event = "closed"
)

// Position is a point in the order of the record: whatever is recorded later has a greater one, on all machines that
// share the store.
type Position int64

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
	Session    string // the agent's session that it was made in; "" for none. Not part of the hashed audit.
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
	// Abandoned says, of a proposal that holds a reservation, that the process which made it has ended: killed, or crashed.
	// The store computes it when it hands out a proposal; what a caller sets is ignored.
	Abandoned bool
	// PrunedAt says when Body and the contents of Files were removed because of their age; zero if they are there. Like
	// Abandoned it is the store's to set.
	PrunedAt time.Time
	// Holder names the process that holds the reservation. Like Abandoned it is the store's to set.
	Holder string
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
	// Undone says that we are about to remove the proposal's branch, or to withdraw its pull request: that it is closed then
	// is nobody's decision. It is recorded before the removal, and stays, unless Finish records the pull request as opened
	// without it: then nothing was removed. Proposals that the store hands out do not have it;
	// see History.Undone.
	Undone bool
}

// Door is the way by which an attempt came in.
type Door string

// The doors.
const (
	DoorMCP  Door = "mcp"
	DoorREST Door = "rest"
	DoorCLI  Door = "cli"
	DoorWeb  Door = "web"

	// What is seen of our pull requests at their providers, rather than proposed.
	DoorWebhook Door = "webhook" // a forge said that there is something to see
	DoorPoll    Door = "poll"
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

// The actions that are about proposals.
const (
	ActionCreate  = "create_pr"
	ActionPromote = "create_pr.promote" // a person opens what a dry run has shown
	ActionSettle  = "create_pr.settle"  // a process ends what another one has left
)

// ProposalActions lists them.
func ProposalActions() []string { return []string{ActionCreate, ActionPromote, ActionSettle} }

// Attempt is one line of the audit. It never holds file contents, a body, or anything that a content rule matched.
type Attempt struct {
	Time      time.Time
	RequestID string
	Door      Door
	Caller    string // the client as it names itself, or the operating system's user; untrusted text
	Tier      gitprovider.Tier
	Action    string // one of ProposalActions, "review.merge", ActionPullMerged, ...
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
	// Session is the agent's session that made the attempt; "" for none. It is in the index of attempts, not in the hashed
	// text of the audit.
	Session string
}
