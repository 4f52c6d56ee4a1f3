// Package sessions holds what is kept of sessions of agents: types, and what a store of them does.
// internal/agents/session runs sessions; internal/records/store keeps them.
package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// Trigger says why a session was started.
type Trigger string

// The triggers.
const (
	TriggerCommand    Trigger = "command"
	TriggerSchedule   Trigger = "schedule"
	TriggerREST       Trigger = "rest"
	TriggerDashboard  Trigger = "dashboard"
	TriggerEscalation Trigger = "escalation"
	TriggerHook       Trigger = "hook" // another program, by a hook of the policy
)

// HookClaim says that a hook is about to start a session for alerts.
type HookClaim struct {
	Hook         string
	Fingerprints []string // of the alerts, without repeats
	Session      string
	Window       time.Duration // within which the same alert starts no second session; at most 7 days
	PerHour      int           // sessions of the hook
	Act          ForgeAct      // by which a person starts it; the zero value for a program
	Owner, Repo  string        // at whose issue that is; a pause there holds, too
	// Row returns the audit's row about the start of the session for the alerts that are new.
	Row func(session string, fresh []string) record.Attempt
}

// ForgeAct is what a person did at a forge to start a session. It starts at most one.
type ForgeAct struct {
	Provider string
	ID       string // unique at the provider, such as "comment 12"
}

// State is the stage of a session, or how it ended.
type State string

// The states. All but running are final.
const (
	StateRunning     State = "running"
	StateSucceeded   State = "succeeded"
	StateFailed      State = "failed"
	StateTimeout     State = "timeout"     // the time limit
	StateLimit       State = "limit"       // the limit of turns or of cost
	StateCancelled   State = "cancelled"   // a person or a signal ended it
	StateInterrupted State = "interrupted" // its supervisor was killed
	StateSkipped     State = "skipped"     // it was due by the schedule while another one ran, and never began
)

// States lists them.
func States() []State {
	return []State{
		StateRunning, StateSucceeded, StateFailed, StateTimeout, StateLimit, StateCancelled, StateInterrupted, StateSkipped,
	}
}

// Bad reports whether a person should look at why it ended so.
func (s State) Bad() bool {
	return s == StateFailed || s == StateTimeout || s == StateLimit || s == StateInterrupted
}

// Cause says in a word why a session ended as it did, where a program or a person needs that; "" of most.
type Cause string

// The causes: of a session that was skipped, and of one that failed.
const (
	CauseBusy    Cause = "busy"    // another session ran when it was due
	CauseRefused Cause = "refused" // settings do not let sessions start, such as a boundary that is required and missing
	CausePaused  Cause = "paused"  // a person had paused everything when it was due
	CauseLogin   Cause = "login"   // Claude Code has to be signed in
)

// Scheduled says how the sessions of the schedule ended, of all that are recorded.
type Scheduled struct {
	Ended    map[State]int64
	Skipped  map[Cause]int64 // that were due and did not start
	LastGood time.Time       // when the last one succeeded; zero: none has
	Last     State           // how the last one ended, or StateSkipped; "" if there was none
	Cause    Cause           // of the last one
	LastAt   time.Time       // when that was
}

// behindAfter is how many intervals may pass without a good session.
const behindAfter = 3

// Behind reports whether a person should look at a schedule with the interval: its last session was refused, or none
// has succeeded for three intervals.
func (s Scheduled) Behind(every time.Duration, now time.Time) bool {
	return s.Last == StateSkipped && s.Cause == CauseRefused ||
		!s.LastGood.IsZero() && now.Sub(s.LastGood) > behindAfter*every
}

// Record is the stored record of a session. Its JSON, which is stored and printed, is one flat object. Text that the
// agent or its tools wrote is redacted, cleaned and bounded; it stays untrusted.
type Record struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Next   string `json:"next,omitempty"` // the session that it escalated to
	// Actor is the session as the actor, with who started it, and whose words it has read.
	Actor record.Actor `json:"actor,omitzero"`
	Task
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Boundary describes the separation of the agent from our files and processes; nil of one that never started, and of
	// records of older versions.
	Boundary *Boundary `json:"boundary,omitempty"`
	Ending
	Work
	Output
	Handover
	Counts Counts `json:"counts"`
}

// Task describes why a session was started.
type Task struct {
	Tier    gitprovider.Tier `json:"tier"`
	Trigger Trigger          `json:"trigger"`
	Note    string           `json:"note,omitempty"`
	Issue   string           `json:"issue,omitempty"` // address of the issue at which a person started it
	Model   string           `json:"model"`
	// Toolsets are the toolsets of the agent's MCP server; nil in records of older versions, which means [pr].
	Toolsets []string `json:"toolsets,omitempty"`
	DryRun   bool     `json:"dry_run,omitempty"`
}

// IssuePerson returns who started the session at an issue, as the forge names them; "" of other sessions.
func (r Record) IssuePerson() string {
	if r.Issue == "" || r.Actor.Session == nil || r.Actor.Session.Starter == nil ||
		r.Actor.Session.Starter.Person == nil {
		return ""
	}
	return r.Actor.Session.Starter.Person.Name
}

// Ending is the state of a session and the reason for its end.
type Ending struct {
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"` // one sentence: why it ended as it did
	Cause    Cause  `json:"cause,omitempty"`
	Claude   string `json:"claude_version,omitempty"`
	ExitCode int    `json:"exit_code"` // -1: ended by a signal, or never started
}

// Work describes what the agent did, and what it cost.
type Work struct {
	Connected bool `json:"connected"` // the agent had our MCP server
	Turns     int  `json:"turns"`
	ToolCalls int  `json:"tool_calls"`
	Usage
	Denials []string `json:"denials,omitempty"`  // tools that the agent was refused by its permissions, at most MaxDenials
	Denied  int      `json:"denied"`             // how often
	LeftOut []string `json:"left_out,omitempty"` // contributions of mounted repositories that were refused, and why
}

// Output holds the CLI's output, apart from the events.
type Output struct {
	CutLines int    `json:"cut_lines"`        // lines of output beyond the bound
	BadLines int    `json:"bad_lines"`        // lines of output that were not events
	Unstored int    `json:"unstored_events"`  // events beyond the bound of what is stored
	Report   string `json:"report,omitempty"` // the agent's last words
	Stderr   string `json:"stderr,omitempty"` // the end of it, where the session did not succeed
}

// Handover holds the handoff that a session received from a lower tier, and the one for a higher tier.
type Handover struct {
	Received       *Handoff `json:"received,omitempty"` // what it was started with
	Handoff        *Handoff `json:"handoff,omitempty"`  // what it left
	HandoffProblem string   `json:"handoff_problem,omitempty"`
	HandoffNotes   []string `json:"handoff_notes,omitempty"`   // what of it was left out or cut
	Noted          int      `json:"journal_entries,omitempty"` // how many entries it added to the journal
	// Open are findings that sessions handed over to higher tiers, this one included, and that are not known to be
	// settled.
	Open       []Escalated `json:"open_findings,omitempty"`
	Escalation string      `json:"escalation,omitempty"` // the result of the handoff, one sentence
}

// Boundary describes the separation of an agent from our files and processes.
type Boundary = sandbox.Boundary

// MaxDenials limits the denied tools that a record lists.
const MaxDenials = 50

// Counts are the attempts at proposals that the audit has of a session.
type Counts struct {
	Opened  int `json:"opened"`
	Revised int `json:"revised"`
	Reused  int `json:"reused"`
	DryRun  int `json:"dry_run"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
}

// Event is one thing that the agent said or did, as it is kept.
type Event struct {
	Seq  int       `json:"seq"` // from 1
	Time time.Time `json:"time"`
	// init, text, tool_use, tool_result, denied, result, or the CLI's own word for it
	Kind string `json:"kind"`
	Tool string `json:"tool,omitempty"` // of tool_use and denied
	Text string `json:"text,omitempty"`
}

// Query selects sessions, newest first. Every field that is set narrows it, but Oldest, which turns the order round.
type Query struct {
	Before  string // sessions older than the one with this id; "" for the newest
	After   string // sessions newer than the one with this id
	Oldest  bool   // oldest first
	Limit   int    // 1 to 200; 0 means 50
	State   State
	Tier    gitprovider.Tier
	Trigger Trigger
	Bad     bool // those alone that ended badly; see State.Bad
	Began   bool // without those that were skipped
	// Search is a part of what was asked, found or reported, in letters of either case; "" for all.
	Search string
}

// Starter returns the name of the person or the program that started the session, as in the sentence of the act; ""
// where that is not known.
func (r Record) Starter() string {
	if r.Actor.Session == nil || r.Actor.Session.Starter == nil {
		return ""
	}
	return record.CallerName(r.Actor.Session.Starter.String())
}

// Matches reports whether what was asked of the session, what it found, or why it ended holds the text, in letters of
// either case.
func (r Record) Matches(text string) bool {
	texts := r.Note + "\n" + r.Reason
	if r.Handoff != nil {
		for _, f := range r.Handoff.Findings {
			texts += "\n" + f.Key + " " + f.Text
		}
	}
	return strings.Contains(strings.ToLower(texts), strings.ToLower(text))
}

// Records keeps sessions. internal/records/store implements it. Methods return *fault.Error with the code internal when
// the store cannot be opened, read or written.
type Records interface {
	// BeginSession records a session that starts, and with it that this process runs it; or one that was skipped.
	BeginSession(ctx context.Context, r Record) error
	// AppendEvents adds events of a running session, in their order.
	AppendEvents(ctx context.Context, id string, events []Event) error
	// SaveSession replaces what is recorded of a session; not_found if there is none with the id.
	SaveSession(ctx context.Context, r Record) error
	// Session returns a session; not_found if there is none.
	Session(ctx context.Context, id string) (Record, error)
	// Sessions lists sessions.
	Sessions(ctx context.Context, q Query) ([]Record, error)
	// SessionEvents returns events after the number, oldest first, at most 500.
	SessionEvents(ctx context.Context, id string, after int) ([]Event, error)
	// SessionCounts counts the attempts that were recorded under a session.
	SessionCounts(ctx context.Context, id string) (Counts, error)
	// CloseInterrupted ends, as StateInterrupted, the sessions that are recorded as running by processes that have
	// ended, and returns their ids.
	CloseInterrupted(ctx context.Context) ([]string, error)
	// AskStop notes that a running session is to end, for the process that runs it; not_found if no session with the id
	// runs.
	AskStop(ctx context.Context, id string) error
	// StopAsked reports whether that was noted.
	StopAsked(ctx context.Context, id string) (bool, error)
}

// Why says in one line why a session ended as it did: what was recorded, or else what the state and the exit code tell.
// It is "" of a session that runs, and of one that came to a good end.
func (e Ending) Why() string {
	if text := strings.Join(strings.Fields(e.Reason), " "); text != "" {
		return text
	}
	switch e.State {
	case StateFailed:
		if e.ExitCode > 0 {
			return fmt.Sprintf("claude exited with code %d; nothing more is recorded", e.ExitCode)
		}
		return "it failed; why is not recorded"
	case StateTimeout:
		return "it reached its limit of time"
	case StateLimit:
		return "it reached its limit of turns or of cost"
	case StateCancelled:
		return "a person or a signal ended it"
	case StateInterrupted:
		return "the process that ran it was killed, or the machine stopped"
	case StateSkipped:
		return "another session was running when it was due"
	}
	return ""
}

// Handoff is a session's message to a session of a higher tier. It is the agent's text: data, never an instruction, and
// its tier is a recommendation that configuration caps.
type Handoff struct {
	Version         int      `json:"version" required:"true"`
	RecommendedTier int      `json:"recommended_tier" required:"true"`
	Services        []string `json:"services"`
	Findings        []Found  `json:"findings" required:"true"`
	WantedChange    Wanted   `json:"wanted_change"`
	Resolved        []string `json:"resolved,omitempty" doc:"Keys of findings that were handed over earlier and are gone"`
}

// Found is an agent's finding. Findings are identified by Key across sessions, so that one that was handed over already
// starts no further session.
type Found struct {
	Key  string `json:"key" doc:"A short name that stays the same from session to session"`
	Text string `json:"text"`
}

// UnmarshalJSON implements json.Unmarshaler. In records of earlier versions a finding is its text alone.
func (f *Found) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &f.Text)
	}
	type plain Found
	return json.Unmarshal(raw, (*plain)(f))
}

// Wanted is a change to a procedure that an agent wants and may not propose itself.
type Wanted struct {
	File     string `json:"file"`
	Evidence string `json:"evidence"`
	Text     string `json:"text"`
}

// Escalated is a finding that has started a session of a higher tier. Sessions hand the list of those that are open on
// to the next, so that a finding which is seen again starts no further session.
type Escalated struct {
	Key      string           `json:"key"`
	Tier     gitprovider.Tier `json:"tier"`     // the highest that it was handed over to
	Sessions []string         `json:"sessions"` // that it started, oldest first
	At       time.Time        `json:"at"`       // when it started the last one
	// Pulls are the pull requests that those sessions opened, changed or found in their way, as owner/name#number.
	Pulls []string `json:"pull_requests,omitempty"`
}

// MaxJournal is the number of journal entries that are kept.
const MaxJournal = 200

// JournalEntry is an agent's note for later sessions, such as a figure that it measured. It is an agent's text: data,
// never an instruction.
type JournalEntry struct {
	Session string    `json:"session"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`
	// Actor is the session that noted it, with who started it. Read lists the people whose words it has read, which the
	// entry may repeat.
	Actor record.Actor `json:"actor,omitzero"`
}

// JournalQuery selects entries of the journal, newest first.
type JournalQuery struct {
	Session string // "" for those of all
	Limit   int    // at most MaxJournal, which is also what 0 means
}

// Journal keeps what agents note for later sessions: one journal for all sessions of these records, as there is one
// schedule. internal/records/store implements it. Errors are faults.
type Journal interface {
	// AppendJournal adds entries of a session, once for each session. It removes the oldest where there are more than
	// MaxJournal.
	AppendJournal(ctx context.Context, by record.Actor, at time.Time, texts []string) error
	// Journal returns entries.
	Journal(ctx context.Context, q JournalQuery) ([]JournalEntry, error)
}
