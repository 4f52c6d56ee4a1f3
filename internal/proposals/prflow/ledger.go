package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Ledger is the memory that all doors share. internal/records/store implements it. Methods return *fault.Error with the
// code internal when the store cannot be opened, read or written; the message says what the operator has to do.
type Ledger interface {
	// Reserve records the proposal, state StateReserved, before its first remote write, and takes the paths of its
	// repository, all of them or none; letter case does not tell paths apart. If a live reservation of another proposal
	// holds one of the paths, or a proposal on one of them was recorded as opened after the claim's position (so that the
	// caller's view of the provider may have missed it), nothing is recorded and that proposal is returned: the caller
	// lost a race, or found what a killed process left. Otherwise the claim's caps are asked, in the same transaction; if
	// they deny, nothing is recorded and theirs is the error.
	Reserve(ctx context.Context, p record.Proposal, claim record.Claim) (taken *record.Proposal, err error)

	// Advance records a step of a reserved proposal. conflict if it is not reserved any more: another process settled it.
	Advance(ctx context.Context, id string, to record.Progress) error

	// Finish ends a reserved proposal in to.State, releases its paths and appends the attempt to the audit, all or
	// nothing. conflict as with Advance; the attempt is then not recorded. The notices go to the outbox in the same
	// transaction.
	Finish(ctx context.Context, id string, to record.Progress, a record.Attempt, notices ...record.Notice) error

	// Adopt makes this process the holder of a proposal that another one has abandoned or left unsettled, so that only one
	// settles it. left is as the store handed it out; ok is false if anything about it has changed since: somebody else
	// has adopted or ended it. From then on the former holder's Advance and Finish are conflicts.
	Adopt(ctx context.Context, left record.Proposal) (ok bool, err error)

	// Supersede replaces a proposal that another process has abandoned or left unsettled by one of the same files: left
	// ends as failed with the attempt in the audit, and next is reserved with its paths, all or nothing. left and ok are
	// as with Adopt.
	Supersede(ctx context.Context, left, next record.Proposal, a record.Attempt) (ok bool, err error)

	// Record appends an attempt that never held a reservation to the audit: a refusal, a reused pull request, a dry run.
	// dryRun, if not nil, is recorded as a proposal in the same transaction, so that a person can look at it; the notices
	// go to the outbox.
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// History answers questions about the past. internal/records/store implements it, with the errors of Ledger.
type History interface {
	// Position returns the present position of the record.
	Position(ctx context.Context) (record.Position, error)

	// ByDigest returns the proposals of the change with this digest that reached a pull request or may have, newest
	// first, at most 20: opened ones and those that still hold a reservation. Whether a pull request is still open only
	// the provider knows.
	ByDigest(ctx context.Context, digest string) ([]record.Proposal, error)

	// Usage counts as Reserve does, without reserving anything.
	Usage(ctx context.Context, provider, owner, repo string, claim record.Claim) (record.Usage, error)

	// Unfinished returns the proposals that still hold a reservation, oldest first, at most 1000.
	Unfinished(ctx context.Context) ([]record.Proposal, error)

	// Undone reports whether we have begun to remove what the proposal with this request id had written; see
	// Progress.Undone. false for one that the ledger does not know.
	Undone(ctx context.Context, id string) (bool, error)

	// UndoneBranches returns the branches of the repository's proposals that we have begun to remove at or after since.
	UndoneBranches(ctx context.Context, provider, owner, repo string, since time.Time) ([]string, error)

	// PathsOf returns the paths of the proposal that became the pull request with this number, sorted; none if the
	// ledger does not know it.
	PathsOf(ctx context.Context, provider, owner, repo string, number int) ([]string, error)

	// MadeOf returns the proposals that made the pull request with this number: the one that opened it and those that have
	// added to it, oldest first, at most 100.
	MadeOf(ctx context.Context, provider, owner, repo string, number int) ([]record.Proposal, error)

	// CooldownLifted returns who lifted the cooldown of a closed pull request, and when; zero values if it was not lifted.
	CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error)

	// Proposal returns the recorded proposal with the request id. not_found if there is none.
	Proposal(ctx context.Context, id string) (record.Proposal, error)
}
