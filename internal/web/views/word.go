// Package views holds what all pages say alike: the words for states, codes, ages, money and names, and the records
// that pages read.
package views

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/fileset"
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

func failedWord(text string) Word { return Word{text, Bad, "alert-circle"} }
func running() Word               { return Word{"Running", Info, "loader-2"} }
func cutShort() Word              { return Word{"Cut short", Mute, "player-stop"} }

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
func Pull(r record.PullRecord) Word { return NextActor(r.NextActor()) }

// NextActor says who is to act on a pull request.
func NextActor(s record.NextActor) Word {
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
		record.OutcomeFailed:  failedWord("Failed: did not finish"),
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
		record.GateContent:  "Contents", record.GatePause: "Pause",
		record.GateRepository: "Repository", record.GateFacts: "What it would do",
		record.GateRevision:  "Revision",
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
		sessions.StateFailed:      failedWord("Failed"),
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
		return failedWord("Failed (exit code " + strconv.Itoa(r.Ending.ExitCode) + ")")
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
func drift(k fileset.DriftKind) Word {
	return wordOf(map[fileset.DriftKind]Word{
		fileset.Missing:  {"Gone", Bad, "minus"},
		fileset.Modified: {"Changed here", Warn, "alert-triangle"},
		fileset.Extra:    {"Not ours", Mute, "info-circle"},
	}, k)
}

// WordOf returns the word for a value of one of the types above, for templates. A value of no such type is a fault of
// the template.
func WordOf(v any) (Word, error) {
	switch v := v.(type) {
	case Word:
		return v, nil
	case record.PullState:
		return pullState(v), nil
	case record.PullRecord:
		return Pull(v), nil
	case record.NextActor:
		return NextActor(v), nil
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
	case fileset.DriftKind:
		return drift(v), nil
	}
	return Word{}, fmt.Errorf("there is no word for a %T", v)
}

// Door says how something came in.
func Door(d record.Door) string {
	names := map[record.Door]string{
		record.DoorMCP: "agent, over MCP", record.DoorREST: "API", record.DoorCLI: "command line",
		record.DoorWeb:     "dashboard",
		record.DoorWebhook: "webhook", record.DoorPoll: "seen when asked",
	}
	return cmp.Or(names[d], string(d))
}

// Trigger says what started a session. name is that of the person or the hook, "" where that is not known; from the
// tier that handed over, 0 for none.
func Trigger(t sessions.Trigger, name string, from int) string {
	switch {
	case t == sessions.TriggerEscalation && from > 0:
		return "handed over by tier " + Count(from)
	case t == sessions.TriggerEscalation:
		return "handed over by a lower tier"
	case (t == sessions.TriggerDashboard || t == sessions.TriggerHook) && name != "":
		return "by " + name
	}
	names := map[sessions.Trigger]string{
		sessions.TriggerCommand: "command line", sessions.TriggerSchedule: "by the schedule", sessions.TriggerREST: "API",
		sessions.TriggerHook:      "by a hook",
		sessions.TriggerDashboard: "dashboard",
	}
	return cmp.Or(names[t], string(t))
}

// Sentence returns a reason as a sentence of its own.
func Sentence(reason string) string {
	first, size := utf8.DecodeRuneInString(reason)
	if size == 0 {
		return ""
	}
	end := "."
	if last := reason[len(reason)-1]; last == '.' || last == '!' || last == '?' || last == '`' {
		end = ""
	}
	return string(unicode.ToUpper(first)) + reason[size:] + end
}

// Lowered returns a text as it stands within a sentence.
func Lowered(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// Face returns the initials for somebody's round picture: at most two letters.
func Face(name string) string {
	name, _, _ = strings.Cut(name, " (") // what a program calls itself, or the number of a user
	letters := ""
	for _, word := range strings.FieldsFunc(name,
		func(r rune) bool { return r == ' ' || r == '-' || r == '.' || r == '_' || r == '@' }) {
		for _, r := range word {
			letters += string(r)
			break
		}
	}
	if runes := []rune(letters); len(runes) > 2 {
		letters = string(runes[:2])
	}
	return strings.ToUpper(cmp.Or(letters, "?"))
}

// Age describes how long ago something was, in the largest unit that fits: "4 min", "3 h", "2 d".
func Age(d time.Duration) string {
	switch {
	case d <= -time.Minute:
		return "in " + durationText(30*time.Second-d) // what was set to 90 days a moment ago is in 90 days
	case d < time.Minute: // clocks differ a little
		return "now"
	}
	return durationText(d)
}

func durationText(d time.Duration) string {
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// Length describes a duration: "54 ms", "0.8 s", "12 s", "31 min", "2 h 5 min".
func Length(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d%time.Hour < time.Minute:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Money returns an amount of US dollars, in cents: "$0.43". What costs less than half a cent, but not nothing, is
// "under $0.01".
func Money(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "under $0.01"
	}
	whole, cents := math.Modf(math.Round(max(usd, 0)*100) / 100)
	return "$" + thousands(strconv.FormatInt(int64(whole), 10)) + strings.TrimPrefix(fmt.Sprintf("%.2f", cents), "0")
}

// Cost describes the cost of a session, with "about" before an estimate and "and more" where a price is not known.
func Cost(u sessions.Usage) string {
	switch u.CostSource {
	case sessions.CostEstimate, sessions.CostClientGuess:
		return "about " + Money(u.CostUSD)
	case sessions.CostUnknown:
		if u.CostUSD == 0 {
			return "not known"
		}
		return Money(u.CostUSD) + " and more"
	}
	if u.CostUSD == 0 && u.Tokens() == 0 {
		return "–"
	}
	return Money(u.CostUSD)
}

// Size returns a number of bytes in the largest unit that says it exactly: "900 bytes", "256 KiB", "1 MiB".
func Size(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return Count(bytes>>20) + " MiB"
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return Count(bytes>>10) + " KiB"
	}
	return Many(bytes, "byte", "bytes")
}

// Tokens returns a number of tokens, short: "850", "18 k", "1.2 M".
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return strconv.FormatInt(n/1000, 10) + " k"
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

// Count returns a whole number: "1,204".
func Count[N int | int64](n N) string { return thousands(strconv.FormatInt(int64(n), 10)) }

func thousands(digits string) string {
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Many returns a count with its noun: "1 file", "1,204 rows".
func Many[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + more
}
