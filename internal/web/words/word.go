package words

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/change"
)

// Tone is the colour of a state. It never stands alone: the word and the icon say the same.
type Tone string

// The tones, in the style sheet as is-TONE.
const (
	Good Tone = "good" // green
	Info Tone = "info" // blue
	Warn Tone = "warn" // amber
	Bad  Tone = "bad"  // red
	Done Tone = "done" // violet
	Mute Tone = "mute" // grey
)

// Word is a state as people read it.
type Word struct {
	Text string
	Tone Tone
	Icon string // its name in Tabler's set
}

// String is the text.
func (w Word) String() string { return w.Text }

func failed(text string) Word { return Word{text, Bad, "alert-circle"} }
func running() Word           { return Word{"Running", Info, "loader-2"} }
func cutShort() Word          { return Word{"Cut short", Mute, "player-stop"} }

// unknown is a value of another version of the program.
func unknown(value string) Word {
	text := strings.ReplaceAll(value, "_", " ")
	return Word{cmp.Or(strings.ToUpper(text[:min(1, len(text))])+text[min(1, len(text)):], "Not known"), Mute, "minus"}
}

// Pull is where a pull request stands, as it was last seen.
func Pull(r record.PullRecord) Word { return Standing(r.Standing()) }

// Standing is who is to act on a pull request.
func Standing(s record.Standing) Word {
	switch s {
	case record.StandingFailed:
		return Checks(gitprovider.ChecksFailure)
	case record.StandingRunning:
		return Checks(gitprovider.ChecksPending)
	case record.StandingAgent:
		return Word{"With the agent", Mute, "robot"}
	case record.StandingReady:
		return Word{"Ready to merge", Good, "circle-check"}
	case record.StandingReview:
		return pullState(gitprovider.StateOpen)
	}
	return pullState(record.PullState(s))
}

// pullState is the state of a pull request of which nothing else is known.
func pullState(s record.PullState) Word {
	switch s {
	case gitprovider.StateOpen:
		return Word{"Needs review", Info, "eye"}
	case gitprovider.StateMerged:
		return Word{"Merged", Done, "git-merge"}
	case gitprovider.StateClosed:
		return Word{"Closed", Mute, "git-pull-request-closed"}
	case record.StateGone:
		return Word{"No longer on the forge", Mute, "git-pull-request-closed"}
	}
	return unknown(string(s))
}

// Outcome is what came of an attempt or an act.
func Outcome(o record.Outcome) Word {
	switch o {
	case record.OutcomeOpened:
		return Word{"Opened", Good, "check"}
	case record.OutcomeRevised:
		return Word{"Revised", Good, "check"}
	case record.OutcomeReused:
		return Word{"Already open", Good, "check"}
	case record.OutcomeDone:
		return Word{"Done", Good, "check"}
	case record.OutcomeDryRun:
		return Word{"Dry run", Warn, "flask"}
	case record.OutcomeRefused:
		return Word{"Refused", Bad, "ban"}
	case record.OutcomeFailed:
		return failed("Failed: did not finish")
	}
	return unknown(string(o))
}

// Proposal is where a proposal stands that is no pull request yet. abandoned says that its process has ended.
func Proposal(s record.ProposalState, abandoned bool) Word {
	switch {
	case abandoned || s == record.StateFailed || s == record.StateUnsettled:
		return Outcome(record.OutcomeFailed)
	case s == record.StateReserved || s == record.StateCommitted:
		return Word{"Being opened", Info, "loader-2"}
	case s == record.StateOpened:
		return Outcome(record.OutcomeOpened)
	case s == record.StateDryRun:
		return Outcome(record.OutcomeDryRun)
	}
	return unknown(string(s))
}

// Review is what a person said of a pull request.
func Review(s gitprovider.ReviewState) Word {
	switch s {
	case gitprovider.ReviewApproved:
		return Word{"Approved", Good, "check"}
	case gitprovider.ReviewChangesRequested:
		return Word{"Changes requested", Warn, "message-2"}
	case gitprovider.ReviewCommented:
		return Word{"Commented", Info, "message-2"}
	case gitprovider.ReviewDismissed:
		return Word{"Withdrawn", Mute, "minus"}
	case gitprovider.ReviewPending:
		return Word{"Not sent yet", Mute, "minus"}
	}
	return unknown(string(s))
}

// Checks is what the forge's own checks say.
func Checks(s gitprovider.ChecksState) Word {
	switch s {
	case gitprovider.ChecksSuccess:
		return Word{"Passed", Good, "check"}
	case gitprovider.ChecksFailure:
		return Word{"Checks failed", Bad, "circle-x"}
	case gitprovider.ChecksPending:
		return Word{"Checks running", Info, "loader-2"}
	case gitprovider.ChecksNone, "":
		return Word{"None", Mute, "minus"}
	}
	return unknown(string(s))
}

// ruling is what one of our checks said, as it ends a sentence: "Scope refused it".
func ruling(r record.Ruling) Word {
	switch r {
	case record.Pass:
		return Word{"passed", Good, "check"}
	case record.Deny:
		return Word{"refused it", Bad, "ban"}
	case record.Skipped:
		return Word{"not asked", Mute, "minus"}
	}
	return unknown(string(r))
}

// Session is how far an agent's session is, or how it ended.
func Session(s sessions.State) Word {
	switch s {
	case sessions.StateRunning:
		return running()
	case sessions.StateSucceeded:
		return Word{"Done", Good, "check"}
	case sessions.StateFailed:
		return failed("Failed")
	case sessions.StateLimit:
		return Word{"Hit its limit", Bad, "hand-stop"}
	case sessions.StateTimeout:
		return Word{"Ran out of time", Bad, "clock-x"}
	case sessions.StateCancelled:
		return Word{"Stopped", Mute, "player-stop"}
	case sessions.StateInterrupted:
		return cutShort()
	case sessions.StateSkipped:
		return Word{"Skipped", Mute, "player-skip-forward"}
	}
	return unknown(string(s))
}

// Script is how far a run of a script is, or how it ended.
func Script(r record.ScriptRun) Word {
	switch {
	case r.State == record.ScriptRunning:
		return running()
	case r.State == record.ScriptInterrupted:
		return cutShort()
	case r.Ending.TimedOut:
		return Word{"Ran out of time", Bad, "clock-x"}
	case r.Ending.ExitCode != 0:
		return failed("Failed (exit code " + strconv.Itoa(r.Ending.ExitCode) + ")")
	}
	return Word{"Done", Good, "check"}
}

// drift is how a file differs from what was deployed.
func drift(k change.DriftKind) Word {
	switch k {
	case change.Missing:
		return Word{"Gone", Bad, "minus"}
	case change.Modified:
		return Word{"Changed here", Warn, "alert-triangle"}
	case change.Extra:
		return Word{"Not ours", Mute, "info-circle"}
	}
	return unknown(string(k))
}

// Of is the word for a value of one of the types above, for templates. A value of no such type is a fault of the
// template.
func Of(v any) (Word, error) {
	switch v := v.(type) {
	case Word:
		return v, nil
	case record.PullState:
		return pullState(v), nil
	case record.PullRecord:
		return Pull(v), nil
	case record.Standing:
		return Standing(v), nil
	case record.Outcome:
		return Outcome(v), nil
	case record.ProposalState:
		return Proposal(v, false), nil
	case gitprovider.ReviewState:
		return Review(v), nil
	case gitprovider.ChecksState:
		return Checks(v), nil
	case record.Ruling:
		return ruling(v), nil
	case sessions.State:
		return Session(v), nil
	case record.ScriptRun:
		return Script(v), nil
	case change.DriftKind:
		return drift(v), nil
	}
	return Word{}, fmt.Errorf("there is no word for a %T", v)
}
