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

// String returns the text.
func (w Word) String() string { return w.Text }

func failed(text string) Word { return Word{text, Bad, "alert-circle"} }
func running() Word           { return Word{"Running", Info, "loader-2"} }
func cutShort() Word          { return Word{"Cut short", Mute, "player-stop"} }

// unknown returns a value of another version of the program.
func unknown(value string) Word {
	text := strings.ReplaceAll(value, "_", " ")
	return Word{cmp.Or(strings.ToUpper(text[:min(1, len(text))])+text[min(1, len(text)):], "Not known"), Mute, "minus"}
}

// wordOf returns the word that a table has for a value.
func wordOf[Value ~string](words map[Value]Word, v Value) Word {
	if word, known := words[v]; known {
		return word
	}
	return unknown(string(v))
}

// Pull describes the state of a pull request, as last seen.
func Pull(r record.PullRecord) Word { return Standing(r.Standing()) }

// Standing says who is to act on a pull request.
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

// pullState returns the state of a pull request of which nothing else is known.
func pullState(s record.PullState) Word {
	return wordOf(map[record.PullState]Word{
		gitprovider.StateOpen:   {"Needs review", Info, "eye"},
		gitprovider.StateMerged: {"Merged", Done, "git-merge"},
		gitprovider.StateClosed: {"Closed", Mute, "git-pull-request-closed"},
		record.StateGone:        {"No longer on the forge", Mute, "git-pull-request-closed"},
	}, s)
}

// Outcome describes the result of an attempt or an act.
func Outcome(o record.Outcome) Word {
	return wordOf(map[record.Outcome]Word{
		record.OutcomeOpened:  {"Opened", Good, "check"},
		record.OutcomeRevised: {"Revised", Good, "check"},
		record.OutcomeReused:  {"Already open", Good, "check"},
		record.OutcomeDone:    {"Done", Good, "check"},
		record.OutcomeDryRun:  {"Dry run", Warn, "flask"},
		record.OutcomeRefused: {"Refused", Bad, "ban"},
		record.OutcomeFailed:  failed("Failed: did not finish"),
	}, o)
}

// Proposal describes the state of a proposal that is not a pull request yet. abandoned says that its process has ended.
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

// Review describes a person's review of a pull request.
func Review(s gitprovider.ReviewState) Word {
	return wordOf(map[gitprovider.ReviewState]Word{
		gitprovider.ReviewApproved:         {"Approved", Good, "check"},
		gitprovider.ReviewChangesRequested: {"Changes requested", Warn, "message-2"},
		gitprovider.ReviewCommented:        {"Commented", Info, "message-2"},
		gitprovider.ReviewDismissed:        {"Withdrawn", Mute, "minus"},
		gitprovider.ReviewPending:          {"Not sent yet", Mute, "minus"},
	}, s)
}

// Checks describes the result of the forge's own checks.
func Checks(s gitprovider.ChecksState) Word {
	return wordOf(map[gitprovider.ChecksState]Word{
		gitprovider.ChecksSuccess: {"Passed", Good, "check"},
		gitprovider.ChecksFailure: {"Checks failed", Bad, "circle-x"},
		gitprovider.ChecksPending: {"Checks running", Info, "loader-2"},
		gitprovider.ChecksNone:    {"None", Mute, "minus"},
		"":                        {"None", Mute, "minus"},
	}, s)
}

// ruling describes the verdict of one of our checks, as the end of a sentence: "Scope refused it".
func ruling(r record.Ruling) Word {
	return wordOf(map[record.Ruling]Word{
		record.Pass:    {"passed", Good, "check"},
		record.Deny:    {"refused it", Bad, "ban"},
		record.Skipped: {"not asked", Mute, "minus"},
	}, r)
}

// Gate returns the name of one of our checks.
func Gate(g record.Gate) string {
	names := map[record.Gate]string{
		record.GateArguments: "Request", record.GateTier: "Tier", record.GateScope: "Protected files",
		record.GateBaseTree: "Present files",
		record.GateContent:  "Contents", record.GateRepository: "Repository", record.GateRevision: "Revision",
		record.GateDuplicate: "Already open",
		record.GateCooldown:  "Cooling down", record.GateAudit: "Record", record.GateCaps: "Limits",
	}
	return cmp.Or(names[g], unknown(string(g)).Text)
}

// Session describes the stage of an agent's session, or how it ended.
func Session(s sessions.State) Word {
	return wordOf(map[sessions.State]Word{
		sessions.StateRunning:     running(),
		sessions.StateSucceeded:   {"Done", Good, "check"},
		sessions.StateFailed:      failed("Failed"),
		sessions.StateLimit:       {"Hit its limit", Bad, "hand-stop"},
		sessions.StateTimeout:     {"Ran out of time", Bad, "clock-x"},
		sessions.StateCancelled:   {"Stopped", Mute, "player-stop"},
		sessions.StateInterrupted: cutShort(),
		sessions.StateSkipped:     {"Skipped", Mute, "player-skip-forward"},
	}, s)
}

// Script describes the stage of a run of a script, or how it ended.
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

// Part describes the state of a part of the server: the values of doctor.Finding.Status.
func Part(status string) Word {
	return wordOf(map[string]Word{
		"ok":      {"In order", Good, "circle-check"},
		"off":     {"Off", Mute, "minus"},
		"warning": {"Mind", Warn, "alert-triangle"},
		"held":    {"Held back", Warn, "hand-stop"},
		"problem": {"Broken", Bad, "alert-circle"},
	}, status)
}

// drift describes how a file differs from the deployed one.
func drift(k change.DriftKind) Word {
	return wordOf(map[change.DriftKind]Word{
		change.Missing:  {"Gone", Bad, "minus"},
		change.Modified: {"Changed here", Warn, "alert-triangle"},
		change.Extra:    {"Not ours", Mute, "info-circle"},
	}, k)
}

// Of returns the word for a value of one of the types above, for templates. A value of no such type is a fault of the
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
