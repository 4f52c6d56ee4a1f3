package record

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
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
	Policy  string         // hash of the policy that judged it; see Attempt
	Digest  string         // of provider, repository, base and files; see changeDigest
	// Facts are what the lines that it adds or alters name and do, against the base branch. They go with the contents
	// when those are removed.
	Facts facts.Reading
	// Tags are the words of the two gravest classes of Facts, with BetweenTags; the store sets them where it gives a part
	// of a proposal.
	Tags string
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

// FactTier is the tier by which the policy judges the facts: 0, for the strictest one, where agents of several tiers
// may have written the change.
func (p Proposal) FactTier() gitprovider.Tier {
	if p.Revises > 0 {
		return 0
	}
	return p.Tier
}

// BetweenTags stands between tags of facts.
const BetweenTags = ", "

// NewestChange returns the newest of the proposals that a pull request consists of, given oldest first, that changes
// files. Its facts are those of the whole pull request. false for none.
func NewestChange(made []Proposal) (Proposal, bool) {
	for _, p := range slices.Backward(made) {
		if len(p.Files) > 0 {
			return p, true
		}
	}
	return Proposal{}, false
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

// Position is a point in the order of the record: whatever is recorded later has a greater one, on all machines that
// share the store.
type Position int64

// Claim is a reservation's view of the open pull requests of its repository, and the caps to keep.
type Claim struct {
	Seen Position   // where the record stood before the provider was asked for Open
	Open []OpenPull // the open pull requests of ours, as the provider listed them after Seen
	// Within is the period of the cap on creations: it ends now, by the clock of the records.
	Within time.Duration
	// Admit decides whether one more may be opened at this usage; an error denies. nil: there is no cap. It is called
	// within the transaction that reserves.
	Admit func(Usage) error
}

// OpenPull tells an open pull request apart from others.
type OpenPull struct {
	Number  int
	Head    string // commit
	Request string // the request id that its mark names; "" if it has none that is true
}

// Usage counts the pull requests of a repository that the ledger and the provider together know. No pull request counts
// twice: neither as listed and recorded, nor as listed and being made.
type Usage struct {
	Open int // those that are open, and the pending ones
	// proposals that hold a reservation: each may become a pull request, or has and that is not recorded yet
	Pending int
	Made    []time.Time // when pull requests were recorded as opened within Claim.Within, oldest first
}

// Event is the kind of a Notice.
type Event string

// The events.
const (
	EventOpened  Event = "opened"
	EventRevised Event = "revised"
	EventRefused Event = "refused" // only if the operator asks for it
	EventMerged  Event = "merged"
	EventClosed  Event = "closed"
	EventStale   Event = "stale" // nobody has acted on it for as long as the policy says
	// EventDeployed is a merge that was put in place on this machine; EventDeployWaits is one that waits for a person
	// before.
	EventDeployed    Event = "deployed"
	EventDeployWaits Event = "deploy_waits"
	// Ends of sessions of agents that a person should look at.
	EventSessionFailed  Event = "session_failed" // or it was too long, or its process was killed
	EventSessionSkipped Event = "session_skipped"
	EventSessionLimit   Event = "session_limit" // of turns or of cost
	EventSessionLogin   Event = "session_login" // Claude Code has to be signed in
)

// Notice is an event to notify people of. It waits in the store's outbox until a sender of internal/ops/notify has
// delivered it.
type Notice struct {
	Event   Event
	Payload []byte // a JSON object; see internal/ops/notify
}

// Notifier tells people of events. internal/ops/notify implements it.
type Notifier interface {
	// Notices returns the notices of an event, one for each target. They are to be put into the outbox in the transaction
	// that records the event.
	Notices(event Event, a Attempt) []Notice
	// Kick has what waits in the outbox delivered, and does not wait for that.
	Kick(ctx context.Context)
}

// PendingNotice is a notice that a sender has claimed from the store's outbox.
type PendingNotice struct {
	ID        int64 // grows in the order of the record
	Event     Event
	Payload   []byte    // as it was given to Ledger
	Attempts  int       // how often it was claimed before, also by processes that died over it
	CreatedAt time.Time // when it was recorded
}

// NoticeSettlement records how the delivery of a claimed notice ended. Exactly one of Delivered, GiveUp and RetryAt is
// set.
type NoticeSettlement struct {
	Delivered bool
	RetryAt   time.Time // when it is to be tried again
	GiveUp    bool
	Error     string // why it was not delivered; the store keeps the first 500 bytes
}

// NoticeCounts is the state of the outbox.
type NoticeCounts struct {
	Pending   int    // waiting, or being delivered now
	GivenUp   int    // not delivered, of the last 30 days
	LastError string // why the newest of those that failed was not delivered yet; "" if none is waiting or given up
}

// PullState is the state of a pull request as it was last seen: open, closed, merged or StateGone.
type PullState = gitprovider.State

// StateGone is the recorded state of a pull request that its provider does not know any more: neither merged nor
// closed, as far as anybody can tell.
const StateGone gitprovider.State = "gone"

// PullStates lists the states that a record of a pull request can have.
func PullStates() []PullState {
	return []PullState{gitprovider.StateOpen, gitprovider.StateMerged, gitprovider.StateClosed, StateGone}
}

// PullKey names a pull request that we opened; owner and repository as the provider spelt them then.
type PullKey struct {
	Provider string
	Owner    string
	Repo     string
	Number   int
}

// PullKey names the pull request that the attempt is about; its Number is 0 if there is none.
func (a Attempt) PullKey() PullKey { return PullKey{a.Provider, a.Owner, a.Repo, a.PRNumber} }

// PullKey names the pull request that the proposal became; its Number is 0 if there is none.
func (p Proposal) PullKey() PullKey { return PullKey{p.Provider, p.Owner, p.Repo, p.PRNumber} }

// PullKeys names the pull requests that attempts are about, each once.
func PullKeys(rows []RecordedAttempt) (keys []PullKey) {
	for _, r := range rows {
		if key := r.PullKey(); r.PRNumber > 0 && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// PullRecord is the last known state of a pull request that we opened. It informs people: no gate reads it, since the
// provider may have newer data.
type PullRecord struct {
	PullKey
	ProposalID       string            // request id of the proposal that became it; "" if none is recorded
	State            gitprovider.State // or StateGone
	Head             string            // head commit; "" if not read yet
	Approvals        int               // people whose last word is an approval
	ChangesRequested int               // people whose last word is a request for changes
	Checks           gitprovider.ChecksState
	UpdatedAt        time.Time // when any of the above changed
	TriedAt          time.Time // when the provider was asked last, with or without an answer; zero: never
	SeenAt           time.Time // when it answered last; zero: never
	SeenBy           Door      // what made us look: DoorWebhook, DoorPoll, or the door of the person who ended it
	EndedAt          time.Time // when it was last merged or closed; kept when it is reopened
	EndedBy          string    // who did that, as the provider names them: untrusted text; "" if it does not say
	Misses           int       // looks in a row at which the provider did not know it
	AskedAt          time.Time // when changes were last requested; zero: never, or the provider does not say
	ReviewedAt       time.Time // when a person first reviewed it; zero: nobody has, as far as we know
	RevisedAt        time.Time // when we last added a commit; zero: never. The store fills it in.
	ActedAt          time.Time // when a person was last seen to act on it; zero: nobody was
	RemindedAt       time.Time // when people were last reminded of it; zero: never
	ClosingAt        time.Time // when a process last began to close it because nobody acts; zero: none has
	ExpiredAt        time.Time // when we closed it because nobody had acted; zero: it is open, or somebody ended it
	LabelsDigest     string    // tells whether its labels are those that it was last seen with; "" before the first look
	// Version grows with each change of the record. 0: it was opened before records were kept, and was not read yet.
	Version int64

	// Of the proposal, as it was opened; the store fills them in and never writes them.
	Base   string
	Branch string
	Title  string
	URL    string
	// OpenedAt is when the pull request was recorded; zero if no proposal is.
	OpenedAt time.Time
	// Tags are the words of the two gravest classes of the facts of its newest proposal, with BetweenTags; "" for none.
	Tags string
}

// WaitsSince returns when somebody last acted on it: when it was opened, revised, or a person acted.
func (r PullRecord) WaitsSince() time.Time {
	last := r.OpenedAt
	for _, t := range []time.Time{r.RevisedAt, r.ActedAt} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Reminded reports whether people were reminded of it since anybody acted on it.
func (r PullRecord) Reminded() bool { return r.Open() && r.RemindedAt.After(r.WaitsSince()) }

// Stale reports whether people are to act on it, and nobody has for the time; 0 is never.
func (r PullRecord) Stale(now time.Time, after time.Duration) bool {
	since := r.WaitsSince()
	return after > 0 && !since.IsZero() && r.Open() && slices.Contains(WaitingStandings(), r.NextActor()) &&
		now.Sub(since) >= after
}

// graceAfterReminder is how long people have at least between the reminder and the close.
const graceAfterReminder = 24 * time.Hour

// ClosesAt returns when the pull request will be closed unless somebody acts on it, where people are reminded and it is
// closed after these times; zero for never. closing 0 is never, and remind 0 is without a reminder.
func (r PullRecord) ClosesAt(remind, closing time.Duration) time.Time {
	since := r.WaitsSince()
	if closing <= 0 || since.IsZero() || !r.Open() || !slices.Contains(WaitingStandings(), r.NextActor()) {
		return time.Time{}
	}
	at := since.Add(closing)
	if remind <= 0 {
		return at
	}
	reminded := since.Add(remind)
	if r.Reminded() {
		reminded = r.RemindedAt
	}
	if grace := reminded.Add(graceAfterReminder); grace.After(at) {
		at = grace
	}
	return at
}

// Expired reports whether the pull request is to be closed now; see ClosesAt. Where there are reminders, people had
// one.
func (r PullRecord) Expired(now time.Time, remind, closing time.Duration) bool {
	at := r.ClosesAt(remind, closing)
	return !at.IsZero() && !now.Before(at) && (remind <= 0 || r.Reminded())
}

// ExpiredAs reports whether we closed the pull request, at the time that its provider gives, because nobody had acted.
func (r PullRecord) ExpiredAs(closed time.Time) bool {
	return !r.ExpiredAt.IsZero() && r.ExpiredAt.Equal(closed.UTC().Truncate(time.Microsecond))
}

// Open reports whether the pull request is open, as far as we know.
func (r PullRecord) Open() bool { return r.State == gitprovider.StateOpen }

// NextActor says who is to act on a pull request. The store counts and finds by the same rules.
func (r PullRecord) NextActor() NextActor {
	switch {
	case !r.Open():
		return NextActor(r.State)
	case r.ChangesRequested > 0 && !r.RevisedAt.After(r.AskedAt):
		return StandingAgent
	case r.Checks == gitprovider.ChecksFailure:
		return StandingFailed
	case r.Checks == gitprovider.ChecksPending:
		return StandingRunning
	case r.ChangesRequested == 0 && r.Approvals > 0:
		return StandingReady
	}
	return StandingReview
}

// NextActor names who is to act on a pull request, or the state of one that has ended.
type NextActor string

// Where an open pull request stands.
const (
	StandingFailed  NextActor = "failed"  // a check of the forge has failed
	StandingReady   NextActor = "ready"   // approved, and no check stands against it
	StandingReview  NextActor = "review"  // a person is to look
	StandingRunning NextActor = "running" // its checks run
	StandingAgent   NextActor = "agent"   // somebody asked for changes, and nothing was revised since
)

// Tab selects changes by where they stand.
type Tab string

// The tabs.
const (
	// for a person: open and not with its agent, or a dry run of the last 30 days that was not promoted
	TabWaiting Tab = "waiting"
	TabAgent   Tab = "agent" // open, and with its agent
	TabRefused Tab = "refused"
	TabMerged  Tab = "merged"
	TabClosed  Tab = "closed" // without a merge, or no longer known to its provider
)

// Tabs lists them.
func Tabs() []Tab { return []Tab{TabWaiting, TabAgent, TabRefused, TabMerged, TabClosed} }

// FrameCounts are the numbers that every page of the dashboard shows beside its own content.
type FrameCounts struct {
	Tabs    map[Tab]int64 // the changes of each tab, and under "" all
	Pulls   PullTotals    // of those that are open
	Running int64         // sessions
	Paused  int64         // pauses that last
}

// waitDays is for how many days before today a dry run waits for a person.
const waitDays = 30

// DryRunsWaitSince returns when the oldest dry run may have been made that waits for a person: the beginning of a day,
// in UTC, since they are counted by the day.
func DryRunsWaitSince(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -waitDays)
}

// CodeCount counts the attempts that were refused with a code.
type CodeCount struct {
	Code  fault.Code `json:"code"`
	Count int        `json:"count"`
}

// PullTotals counts pull requests by where they stand; those that have ended by their state.
type PullTotals map[NextActor]int64

// Waiting counts the pull requests that are open and not with their agents.
func (t PullTotals) Waiting() (n int64) {
	for _, standing := range WaitingStandings() {
		n += t[standing]
	}
	return n
}

// WaitingStandings returns the standings of pull requests that wait for a person.
func WaitingStandings() []NextActor {
	return []NextActor{StandingFailed, StandingReady, StandingReview, StandingRunning}
}

// RepoName is a repository at its provider.
type RepoName struct{ Provider, Owner, Name string }

// String returns provider:owner/name.
func (r RepoName) String() string { return fmt.Sprintf("%s:%s/%s", r.Provider, r.Owner, r.Name) }

// ReviewAnswer is a proposal's answer to the review of the pull request that it adds to.
type ReviewAnswer struct {
	Text string `json:"text"` // as it is posted, below its opening
	// Comment is the id of the comment on a line that it answers; "" if it answers the review as a whole. The others say
	// where that comment stands.
	Comment string `json:"comment,omitempty"`
	Thread  string `json:"thread,omitempty"` // see gitprovider.LineComment
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"`
	Before  bool   `json:"before,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Quote   string `json:"quote,omitempty"` // its first words, fit to be posted
}

// OutcomeTotal counts all recorded attempts at proposals with an outcome.
type OutcomeTotal struct {
	Outcome Outcome
	Count   int64
}

// GateTotal counts all recorded attempts that a gate has refused.
type GateTotal struct {
	Gate  Gate
	Count int64
}

// OpenPulls counts our open pull requests in a repository, by age.
type OpenPulls struct {
	RepoName
	Day, Week, Month, Older int64 // opened in the last 24 hours, 7 days, 30 days but not in the shorter time, and before
}

// All returns the sum of all ages.
func (o OpenPulls) All() int64 { return o.Day + o.Week + o.Month + o.Older }
