// Package record holds the types of what Claude Ops keeps: attempts with the verdicts of the gates, proposals, what was
// last seen of pull requests, notices, and the queries and reports about them. It knows neither who makes the records
// nor where they are stored.
package record

import (
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

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

// Outcome says how an attempt ended.
type Outcome string

// The outcomes of an attempt.
const (
	OutcomeOpened  Outcome = "opened"
	OutcomeRevised Outcome = "revised" // one more commit on an open pull request
	OutcomeReused  Outcome = "reused"
	OutcomeDryRun  Outcome = "dry_run"
	OutcomeRefused Outcome = "refused" // by a gate
	OutcomeFailed  Outcome = "failed"  // by a fault: provider, store, cancellation
	OutcomeDone    Outcome = "done"    // a person's review, merge or close
)

// Outcomes lists them.
func Outcomes() []Outcome {
	return []Outcome{OutcomeOpened, OutcomeRevised, OutcomeReused, OutcomeDryRun, OutcomeRefused, OutcomeFailed,
		OutcomeDone}
}

// OutcomeOf is the outcome of an attempt that ended with the code.
func OutcomeOf(code fault.Code) Outcome {
	if code.Refusal() {
		return OutcomeRefused
	}
	return OutcomeFailed
}

// The actions that are about proposals.
const (
	ActionCreate  = "create_pr"
	ActionPromote = "create_pr.promote" // a person opens what a dry run has shown
	ActionSettle  = "create_pr.settle"  // a process ends what another one has left
)

// ProposalActions lists them.
func ProposalActions() []string { return []string{ActionCreate, ActionPromote, ActionSettle} }

// The audit's actions for changes of our pull requests at their providers.
const (
	ActionPullMerged   = "pull.merged"
	ActionPullClosed   = "pull.closed"
	ActionPullReopened = "pull.reopened"
	ActionPullGone     = "pull.gone"    // the provider has not known it for a while
	ActionPullFound    = "pull.found"   // it does again
	ActionPullExpired  = "pull.expired" // closed by us: nobody had acted on it for as long as the policy says
	ActionPullStale    = "pull.stale"   // nobody has acted on it for as long as the policy says
)

// ActionDeployMerge is a merge that was deployed by itself, or that waits for a person before it is.
const ActionDeployMerge = "deploy.after_merge"

// ActionReviewMerge is a pull request of a local repository that a person has merged.
const ActionReviewMerge = "review.merge"

// ActionStartSession is a session of an agent that somebody has started.
const ActionStartSession = "session.start"

// Attempt is one line of the audit. It never holds file contents, a body, or anything that a content rule matched.
type Attempt struct {
	Time      time.Time
	RequestID string
	Actor     Actor
	// Door and Caller are Actor.Door and Actor.String, as columns to search by. The store fills them in where there is an
	// Actor.
	Door     Door
	Caller   string
	Tier     gitprovider.Tier
	Action   string // one of ProposalActions, "review.merge", ActionPullMerged, ...
	Provider string
	Owner    string
	Repo     string
	Base     string
	Branch   string
	Title    string
	Paths    []string
	Digest   string
	Verdicts []Verdict
	Outcome  Outcome
	Code     fault.Code // "" on success
	Message  string
	PRNumber int
	PRURL    string
	Duration time.Duration
	// Policy is the hash of the policy that judged the attempt, or PolicyUnreadable. The store fills in that of the
	// moment. "" in rows of earlier versions.
	Policy string
	// Session is the agent's session that made the attempt; "" for none. It is in the index of attempts, not in the hashed
	// text of the audit.
	Session string
	// Wanted is the change that a refused attempt asked for; nil where it is not kept. Like Session it is not part of the
	// hashed text.
	Wanted *RefusedChange
}

// PolicyUnreadable stands for the hash of a policy while the operator's rules cannot be read.
const PolicyUnreadable = "unreadable"

// Facts returns what the gate of facts counted in the change; not read if it was not asked.
func (a Attempt) Facts() facts.Reading {
	for _, v := range a.Verdicts {
		if v.Gate == GateFacts {
			return facts.ParseSummary(v.Detail)
		}
	}
	return facts.Reading{}
}

// RecordedAttempt is an attempt with its place in the audit.
type RecordedAttempt struct {
	Seq      int64 // from 1, without gaps
	PrevHash string
	Hash     string
	Attempt
	// State is the state of the proposal which the attempt made; "" if it made none.
	State ProposalState
}

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
	Tab      Tab       // changes that stand so; "" for all
	// one row for each change: without those that revised one, found it open already, or were opened after a dry run
	Changes bool
	Since   time.Time // at this time or later
	Until   time.Time // before this time
	// part of the title or of a path, letter case of ASCII aside; or #12, or 12, for what is about that pull request, too
	Search string
}

// Ends of pull requests, which the counts of days have beside the outcomes of attempts.
const (
	EndedMerged Outcome = "merged"
	EndedClosed Outcome = "closed"
)

// OutcomeCount counts the attempts of a day (UTC) with an outcome.
type OutcomeCount struct {
	Day     time.Time
	Outcome Outcome
	Count   int
}

// GateCount counts the refusals of a gate.
type GateCount struct {
	Gate  Gate
	Count int
}

// Gate names one gate of the pipeline (design §3), in the order of Gates.
type Gate string

// The gates.
const (
	GateArguments  Gate = "arguments"
	GateTier       Gate = "tier"
	GateScope      Gate = "scope"
	GateBaseTree   Gate = "base_tree"
	GateContent    Gate = "content"
	GatePause      Gate = "pause"
	GateRepository Gate = "repository"
	GateFacts      Gate = "facts"
	GateRevision   Gate = "revision"
	GateDuplicate  Gate = "duplicate"
	GateCooldown   Gate = "cooldown"
	GateAudit      Gate = "audit"
	GateCaps       Gate = "caps"
)

// Gates lists them, in the order in which they are asked.
func Gates() []Gate {
	return []Gate{GateArguments, GateTier, GateScope, GateBaseTree, GateContent, GatePause, GateRepository,
		GateFacts, GateRevision, GateDuplicate, GateCooldown, GateAudit, GateCaps}
}

// ParseGate returns the gate with a name, and "" for none; invalid_argument for a name that no gate has.
func ParseGate(name string) (Gate, error) {
	gate := Gate(name)
	if gate == "" || slices.Contains(Gates(), gate) {
		return gate, nil
	}
	names := make([]string, len(Gates()))
	for i, g := range Gates() {
		names[i] = string(g)
	}
	return "", fault.New(fault.InvalidArgument, "`gate` is not one of %s", strings.Join(names, ", "))
}

// Ruling is the result of a gate.
type Ruling string

// The rulings.
const (
	Pass    Ruling = "pass"
	Deny    Ruling = "deny"
	Skipped Ruling = "skipped" // could not be asked, because an earlier gate had refused
)

// Verdict is one gate's ruling on one request.
type Verdict struct {
	Gate       Gate              `json:"gate"`
	Ruling     Ruling            `json:"ruling"`
	Detail     string            `json:"detail,omitempty"` // why it passed or was skipped, for people
	Violations []fault.Violation `json:"violations,omitempty"`
	// what the gate lets pass and a person should know before merging
	Warnings []string `json:"warnings,omitempty"`
}

// RefusedChange is the change of an attempt that did not become a proposal: an aid for people, and not part of the
// audit. It holds only texts that were searched for secrets without a finding; of the others it says why they are
// withheld. Of a longer text it holds the beginning: refused changes must not fill the records.
type RefusedChange struct {
	ChangeType string        `json:"change_type,omitempty"`
	Body       RefusedText   `json:"body"`
	Files      []RefusedFile `json:"files"`
	// FilesOmitted counts the further files that are not listed.
	FilesOmitted int `json:"files_omitted,omitempty" doc:"How many further files there were"`
}

// RefusedText is a text, or its beginning, or why it is withheld.
type RefusedText struct {
	Text     string `json:"text,omitempty"`
	Rest     string `json:"rest,omitempty" doc:"Of a text that is not kept whole: its size, and the SHA-256 of the whole"`
	Withheld string `json:"withheld,omitempty" doc:"Why the text is not kept, with rule and line"`
}

// RefusedFile is one file of a change.
type RefusedFile struct {
	Path   string             `json:"path"`
	Action gitprovider.Action `json:"action"`
	RefusedText
	Edits bool `json:"edits,omitempty" doc:"The text is what edits would have put in, and not the whole file"`
}

// Reply is the answer to a request with an Idempotency-Key.
type Reply struct {
	Status int // 0: nothing yet
	Body   []byte
}
