package record

import (
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ProposalState is the stage of a proposal.
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
	Actor      Actor
	Door       Door // see Attempt
	Caller     string
	Session    string // the agent's session that it was made in; "" for none. Not part of the hashed audit.
	Tier       gitprovider.Tier
	Provider   string
	Owner      string // as the provider spells it
	Repo       string
	Base       string
	BaseCommit string // of the base branch; of one that revises, the head that it adds to
	ChangeType gitprovider.ChangeType
	Title      string
	Body       string
	Files      []gitprovider.FileChange // sorted by path
	// number of the pull request to which it adds a commit; 0 for one that opens its own
	Revises int
	Answers []ReviewAnswer // of one that revises; without Files they are all of it
	Digest  string         // of provider, repository, base and files; see changeDigest
	// Abandoned says, of a proposal that holds a reservation, that the process which made it has ended: killed, or
	// crashed. The store computes it when it hands out a proposal; what a caller sets is ignored.
	Abandoned bool
	// PrunedAt says when Body and the contents of Files were removed because of their age; zero if they are there. Like
	// Abandoned it is the store's to set.
	PrunedAt time.Time
	// Holder names the lock of the process that works on the reservation; "" if that is not known. Like Abandoned it is
	// set by the store.
	Holder string
	Progress
}

// Progress is the part of a proposal that changes as it proceeds. In a call to Advance or Finish, empty fields other
// than State leave what is recorded.
type Progress struct {
	State    ProposalState
	Branch   string
	Commit   string
	PRNumber int // of one that revises, recorded before the comment is sent that answers the review
	PRURL    string
	// Undone says that we are about to remove the proposal's branch, or to withdraw its pull request: its closing is then
	// not a person's decision. It is recorded before the removal, and stays, unless Finish records the pull request as
	// opened without it: then nothing was removed. Proposals that the store returns do not have it; see History.Undone.
	Undone bool
}
