package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
	RevisedAt        time.Time // when we last added a commit; zero: never. The store fills it in.
	// Version grows with each change of the record. 0: it was opened before records were kept, and was not read yet.
	Version int64

	// Of the proposal, as it was opened; the store fills them in and never writes them.
	Base   string
	Branch string
	Title  string
	URL    string
	// OpenedAt is when the pull request was recorded; zero if no proposal is.
	OpenedAt time.Time
}

// Open reports whether the pull request is open, as far as we know.
func (r PullRecord) Open() bool { return r.State == gitprovider.StateOpen }

// Standing says who is to act on a pull request. The store counts and finds by the same rules.
func (r PullRecord) Standing() Standing {
	switch {
	case !r.Open():
		return Standing(r.State)
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

// Standing names who is to act on a pull request, or the state of one that has ended.
type Standing string

// Where an open pull request stands.
const (
	StandingFailed  Standing = "failed"  // a check of the forge has failed
	StandingReady   Standing = "ready"   // approved, and no check stands against it
	StandingReview  Standing = "review"  // a person is to look
	StandingRunning Standing = "running" // its checks run
	StandingAgent   Standing = "agent"   // somebody asked for changes, and nothing was revised since
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

// CodeCount counts the attempts that were refused with a code.
type CodeCount struct {
	Code  fault.Code
	Count int
}

// PullTotals counts pull requests by where they stand; those that have ended by their state.
type PullTotals map[Standing]int64

// Waiting counts the pull requests that are open and not with their agents.
func (t PullTotals) Waiting() (n int64) {
	for _, standing := range WaitingStandings() {
		n += t[standing]
	}
	return n
}

// WaitingStandings returns the standings of pull requests that wait for a person.
func WaitingStandings() []Standing {
	return []Standing{StandingFailed, StandingReady, StandingReview, StandingRunning}
}

// RepoName is a repository at its provider.
type RepoName struct{ Provider, Owner, Name string }

// String returns provider:owner/name.
func (r RepoName) String() string { return fmt.Sprintf("%s:%s/%s", r.Provider, r.Owner, r.Name) }
