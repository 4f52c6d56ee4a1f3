package views_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/web/views"
)

func pull(asked, approved int, checks gitprovider.ChecksState) record.PullRecord {
	return record.PullRecord{State: gitprovider.StateOpen, ChangesRequested: asked, Approvals: approved, Checks: checks}
}

func revised(r record.PullRecord) record.PullRecord {
	r.AskedAt = time.Unix(1, 0)
	r.RevisedAt = time.Unix(2, 0)
	return r
}

func TestAnOpenPullRequestSaysWhoMustAct(t *testing.T) {
	for name, c := range map[string]struct {
		of   record.PullRecord
		text string
		tone views.Tone
	}{
		"nobody has reviewed it":            {pull(0, 0, gitprovider.ChecksSuccess), "Needs review", views.Info},
		"approved":                          {pull(0, 1, gitprovider.ChecksNone), "Ready to merge", views.Good},
		"approved, and nobody looked":       {pull(0, 1, ""), "Ready to merge", views.Good},
		"approved, checks passed":           {pull(0, 2, gitprovider.ChecksSuccess), "Ready to merge", views.Good},
		"approved, checks run":              {pull(0, 1, gitprovider.ChecksPending), "Checks running", views.Info},
		"approved, checks failed":           {pull(0, 1, gitprovider.ChecksFailure), "Checks failed", views.Bad},
		"changes requested, checks failed":  {pull(1, 0, gitprovider.ChecksFailure), "With the agent", views.Mute},
		"changes requested":                 {pull(1, 0, gitprovider.ChecksSuccess), "With the agent", views.Mute},
		"changes requested beside approval": {pull(1, 1, ""), "With the agent", views.Mute},
		"changes requested, then revised":   {revised(pull(1, 1, "")), "Needs review", views.Info},
		"merged": {record.PullRecord{State: gitprovider.StateMerged,
			Checks: gitprovider.ChecksFailure}, "Merged", views.Done},
		"closed": {record.PullRecord{State: gitprovider.StateClosed}, "Closed", views.Mute},
		"gone": {record.PullRecord{State: record.StateGone}, "No longer on the forge",
			views.Mute},
	} {
		if got := views.Pull(c.of); got.Text != c.text || got.Tone != c.tone || got.Icon == "" {
			t.Errorf("%s: %+v, want %q in %s", name, got, c.text, c.tone)
		}
	}
}

func TestEachStateHasItsWord(t *testing.T) {
	script := func(s record.ScriptRunState, e record.ScriptEnding) record.ScriptRun {
		return record.ScriptRun{State: s, Ending: e}
	}
	for _, c := range []struct {
		of   any
		want string
	}{
		{record.OutcomeOpened, "good Opened"}, {record.OutcomeRevised, "good Revised"},
		{record.OutcomeReused, "good Already open"},
		{record.OutcomeDone, "good Done"}, {record.OutcomeDryRun, "warn Dry run"}, {record.OutcomeRefused, "bad Refused"},
		{record.OutcomeFailed, "bad Failed: did not finish"},
		{record.StateReserved, "info Being opened"}, {record.StateCommitted, "info Being opened"},
		{record.StateOpened, "good Opened"},
		{record.StateUnsettled, "bad Failed: did not finish"}, {record.StateFailed, "bad Failed: did not finish"},
		{record.StateDryRun, "warn Dry run"}, {views.Proposal(record.StateReserved, true), "bad Failed: did not finish"},
		{gitprovider.ReviewApproved, "good Approved"}, {gitprovider.ReviewChangesRequested, "warn Changes requested"},
		{gitprovider.ReviewCommented, "info Commented"}, {gitprovider.ReviewDismissed, "mute Withdrawn"},
		{gitprovider.ReviewPending, "mute Not sent yet"},
		{gitprovider.ChecksSuccess, "good Passed"}, {gitprovider.ChecksFailure, "bad Checks failed"},
		{gitprovider.ChecksPending, "info Checks running"},
		{gitprovider.ChecksNone, "mute None"},
		{record.Pass, "good passed"}, {record.Deny, "bad refused it"}, {record.Skipped, "mute not asked"},
		{sessions.StateRunning, "info Running"}, {sessions.StateSucceeded, "good Done"}, {sessions.StateFailed, "bad Failed"},
		{sessions.StateLimit, "bad Hit its limit"}, {sessions.StateTimeout, "bad Ran out of time"},
		{sessions.StateCancelled, "mute Stopped"},
		{sessions.StateInterrupted, "mute Cut short"}, {sessions.StateSkipped, "mute Skipped"},
		{script(record.ScriptRunning, record.ScriptEnding{}), "info Running"},
		{script(record.ScriptEnded, record.ScriptEnding{}), "good Done"},
		{script(record.ScriptEnded, record.ScriptEnding{ExitCode: 3}), "bad Failed (exit code 3)"},
		{script(record.ScriptEnded, record.ScriptEnding{ExitCode: -1, TimedOut: true}), "bad Ran out of time"},
		{script(record.ScriptInterrupted, record.ScriptEnding{}), "mute Cut short"},
		{fileset.Missing, "bad Gone"}, {fileset.Modified, "warn Changed here"}, {fileset.Extra, "mute Not ours"},
		{record.Outcome("brand_new"), "mute Brand new"}, {record.Outcome(""), "mute Not known"},
	} {
		got, err := views.WordOf(c.of)
		if err != nil || string(got.Tone)+" "+got.Text != c.want || got.Icon == "" {
			t.Errorf("%T %v: %+v, %v; want %s", c.of, c.of, got, err, c.want)
		}
	}
	if _, err := views.WordOf(7); err == nil {
		t.Error("a number is not a state")
	}
}

// Every code, session state and door has a word of its own, so that no page shows an identifier. The name of a gate
// becomes words where Gate has none for it.
func TestNothingIsWithoutAWord(t *testing.T) {
	for _, c := range fault.Codes() {
		if got := record.CodeText(c); got == "" || strings.Contains(got, "_") ||
			strings.EqualFold(got, strings.ReplaceAll(string(c), "_", " ")) && c != fault.LimitReached && c != fault.ReadOnly {
			t.Errorf("code %s: %q", c, got)
		}
	}
	for _, s := range sessions.States() {
		if views.Session(s).Text == string(s) {
			t.Errorf("session %s", s)
		}
	}
	for door := range map[record.Door]bool{
		record.DoorMCP: true, record.DoorREST: true, record.DoorCLI: true, record.DoorWeb: true, record.DoorWebhook: true,
		record.DoorPoll: true,
	} {
		if got := views.Door(door); got == string(door) && door != record.DoorWebhook {
			t.Errorf("door %s: %q", door, got)
		}
	}
}

func TestSentencesAndFaces(t *testing.T) {
	if got := views.Sentence("it took long") + views.Sentence("") + views.Sentence("Ah.") +
		views.Sentence("ö"); got != "It took long.Ah.Ö." {
		t.Error(got)
	}
	if got := views.Face("ann lee") + views.Face("watcher") + views.Face("") +
		views.Face("claude-ops-demo"); got != "ALW?CO" {
		t.Error(got)
	}
}

func TestASessionSaysWhatStartedIt(t *testing.T) {
	for _, c := range []struct {
		of   sessions.Trigger
		name string
		from int
		want string
	}{
		{sessions.TriggerCommand, "", 0, "command line"}, {sessions.TriggerSchedule, "", 0, "by the schedule"},
		{sessions.TriggerREST, "", 0, "API"},
		{sessions.TriggerDashboard, "anna", 0, "by anna"}, {sessions.TriggerDashboard, "", 0, "dashboard"},
		{sessions.TriggerHook, "hook alerts", 0, "by hook alerts"}, {sessions.TriggerHook, "", 0, "by a hook"},
		{sessions.TriggerEscalation, "", 1, "handed over by tier 1"},
		{sessions.TriggerEscalation, "", 0, "handed over by a lower tier"},
	} {
		if got := views.Trigger(c.of, c.name, c.from); got != c.want {
			t.Errorf("%s: %q, want %q", c.of, got, c.want)
		}
	}
}

func TestAgesLengthsAndNumbers(t *testing.T) {
	const day = 24 * time.Hour
	for got, want := range map[string]string{
		views.Age(0): "now", views.Age(59 * time.Second): "now", views.Age(time.Minute): "1 min",
		views.Age(59*time.Minute + 59*time.Second): "59 min",
		views.Age(time.Hour):                       "1 h", views.Age(2*day - 1): "47 h", views.Age(2 * day): "2 d",
		views.Age(400 * day):                       "400 d",
		views.Age(2*time.Second - 90*24*time.Hour): "in 90 d",
		views.Age(-12 * time.Minute):               "in 12 min", views.Age(-time.Second): "now",
		views.Length(54 * time.Millisecond): "54 ms", views.Length(800 * time.Millisecond): "0.8 s",
		views.Length(31 * time.Minute): "31 min",
		views.Length(12 * time.Second): "12 s", views.Length(2 * time.Hour): "2 h",
		views.Length(125 * time.Minute): "2 h 5 min", views.Length(-1): "0 ms",
		views.Money(0.43): "$0.43", views.Money(0): "$0.00", views.Money(0.004): "under $0.01", views.Money(18.419): "$18.42",
		views.Money(1999.999): "$2,000.00", views.Money(1234567.8): "$1,234,567.80",
		views.Count(1204): "1,204", views.Count(7): "7", views.Count(int64(-1204)): "-1,204", views.Count(-120): "-120",
		views.Count(1_000_000):         "1,000,000",
		views.Many(1, "file", "files"): "1 file", views.Many(1204, "row", "rows"): "1,204 rows",
		views.Many(0, "file", "files"): "0 files",
		views.Tokens(850):              "850", views.Tokens(18_400): "18 k", views.Tokens(1_210_000): "1.2 M",
		views.Cost(sessions.Usage{CostUSD: 1.938, CostSource: sessions.CostClient}):                      "$1.94",
		views.Cost(sessions.Usage{CostUSD: 0.311, CostSource: sessions.CostEstimate}):                    "about $0.31",
		views.Cost(sessions.Usage{CostUSD: 0.311, CostSource: sessions.CostClientGuess, InputTokens: 1}): "about $0.31",
		views.Cost(sessions.Usage{CostUSD: 0.311, CostSource: sessions.CostUnknown}):                     "$0.31 and more",
		views.Cost(sessions.Usage{CostSource: sessions.CostUnknown}):                                     "not known",
		views.Cost(sessions.Usage{}): "–",
		views.Size(0):                "0 bytes", views.Size(1): "1 byte", views.Size(1023): "1,023 bytes",
		views.Size(1025): "1,025 bytes", views.Size(262144): "256 KiB", views.Size(1 << 20): "1 MiB",
		views.Size(3 << 19): "1,536 KiB",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
