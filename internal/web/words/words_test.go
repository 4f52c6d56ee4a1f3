package words_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/web/words"
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
		tone words.Tone
	}{
		"nobody has reviewed it":            {pull(0, 0, gitprovider.ChecksSuccess), "Needs review", words.Info},
		"approved":                          {pull(0, 1, gitprovider.ChecksNone), "Ready to merge", words.Good},
		"approved, and nobody looked":       {pull(0, 1, ""), "Ready to merge", words.Good},
		"approved, checks passed":           {pull(0, 2, gitprovider.ChecksSuccess), "Ready to merge", words.Good},
		"approved, checks run":              {pull(0, 1, gitprovider.ChecksPending), "Checks running", words.Info},
		"approved, checks failed":           {pull(0, 1, gitprovider.ChecksFailure), "Checks failed", words.Bad},
		"changes requested, checks failed":  {pull(1, 0, gitprovider.ChecksFailure), "With the agent", words.Mute},
		"changes requested":                 {pull(1, 0, gitprovider.ChecksSuccess), "With the agent", words.Mute},
		"changes requested beside approval": {pull(1, 1, ""), "With the agent", words.Mute},
		"changes requested, then revised":   {revised(pull(1, 1, "")), "Needs review", words.Info},
		"merged": {record.PullRecord{State: gitprovider.StateMerged,
			Checks: gitprovider.ChecksFailure}, "Merged", words.Done},
		"closed": {record.PullRecord{State: gitprovider.StateClosed}, "Closed", words.Mute},
		"gone": {record.PullRecord{State: record.StateGone}, "No longer on the forge",
			words.Mute},
	} {
		if got := words.Pull(c.of); got.Text != c.text || got.Tone != c.tone || got.Icon == "" {
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
		{record.StateDryRun, "warn Dry run"}, {words.Proposal(record.StateReserved, true), "bad Failed: did not finish"},
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
		{change.Missing, "bad Gone"}, {change.Modified, "warn Changed here"}, {change.Extra, "mute Not ours"},
		{record.Outcome("brand_new"), "mute Brand new"}, {record.Outcome(""), "mute Not known"},
	} {
		got, err := words.Of(c.of)
		if err != nil || string(got.Tone)+" "+got.Text != c.want || got.Icon == "" {
			t.Errorf("%T %v: %+v, %v; want %s", c.of, c.of, got, err, c.want)
		}
	}
	if _, err := words.Of(7); err == nil {
		t.Error("a number is not a state")
	}
}

// Every code, gate and state that there is has a word of its own, so that no page shows an identifier.
func TestNothingIsWithoutAWord(t *testing.T) {
	for _, c := range fault.Codes() {
		if got := record.CodeText(c); got == "" || strings.Contains(got, "_") ||
			strings.EqualFold(got, strings.ReplaceAll(string(c), "_", " ")) && c != fault.LimitReached && c != fault.ReadOnly {
			t.Errorf("code %s: %q", c, got)
		}
	}
	for _, s := range sessions.States() {
		if words.Session(s).Text == string(s) {
			t.Errorf("session %s", s)
		}
	}
	for door := range map[record.Door]bool{
		record.DoorMCP: true, record.DoorREST: true, record.DoorCLI: true, record.DoorWeb: true, record.DoorWebhook: true,
		record.DoorPoll: true,
	} {
		if got := words.Door(door); got == string(door) && door != record.DoorWebhook {
			t.Errorf("door %s: %q", door, got)
		}
	}
}

func TestSentencesAndFaces(t *testing.T) {
	if got := words.Sentence("it took long") + words.Sentence("") + words.Sentence("Ah.") +
		words.Sentence("ö"); got != "It took long.Ah.Ö." {
		t.Error(got)
	}
	if got := words.Face("ann lee") + words.Face("watcher") + words.Face("") +
		words.Face("claude-ops-demo"); got != "ALW?CO" {
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
		{sessions.TriggerEscalation, "", 1, "handed over by tier 1"},
		{sessions.TriggerEscalation, "", 0, "handed over by a lower tier"},
	} {
		if got := words.Trigger(c.of, c.name, c.from); got != c.want {
			t.Errorf("%s: %q, want %q", c.of, got, c.want)
		}
	}
}

func TestAgesLengthsAndNumbers(t *testing.T) {
	const day = 24 * time.Hour
	for got, want := range map[string]string{
		words.Age(0): "now", words.Age(59 * time.Second): "now", words.Age(time.Minute): "1 min",
		words.Age(59*time.Minute + 59*time.Second): "59 min",
		words.Age(time.Hour):                       "1 h", words.Age(2*day - 1): "47 h", words.Age(2 * day): "2 d",
		words.Age(400 * day):                       "400 d",
		words.Age(2*time.Second - 90*24*time.Hour): "in 90 d",
		words.Age(-12 * time.Minute):               "in 12 min", words.Age(-time.Second): "now",
		words.Length(54 * time.Millisecond): "54 ms", words.Length(800 * time.Millisecond): "0.8 s",
		words.Length(31 * time.Minute): "31 min",
		words.Length(12 * time.Second): "12 s", words.Length(2 * time.Hour): "2 h",
		words.Length(125 * time.Minute): "2 h 5 min", words.Length(-1): "0 ms",
		words.Money(0.43): "$0.43", words.Money(0): "$0.00", words.Money(0.004): "under $0.01", words.Money(18.419): "$18.42",
		words.Money(1999.999): "$2,000.00", words.Money(1234567.8): "$1,234,567.80",
		words.Count(1204): "1,204", words.Count(7): "7", words.Count(int64(-1204)): "-1,204", words.Count(-120): "-120",
		words.Count(1_000_000):         "1,000,000",
		words.Many(1, "file", "files"): "1 file", words.Many(1204, "row", "rows"): "1,204 rows",
		words.Many(0, "file", "files"): "0 files",
		words.Tokens(850):              "850", words.Tokens(18_400): "18 k", words.Tokens(1_210_000): "1.2 M",
		words.Cost(sessions.Usage{CostUSD: 1.938, CostSource: sessions.CostClient}):                      "$1.94",
		words.Cost(sessions.Usage{CostUSD: 0.311, CostSource: sessions.CostEstimate}):                    "about $0.31",
		words.Cost(sessions.Usage{CostUSD: 0.311, CostSource: sessions.CostClientGuess, InputTokens: 1}): "about $0.31",
		words.Cost(sessions.Usage{CostUSD: 0.311, CostSource: sessions.CostUnknown}):                     "$0.31 and more",
		words.Cost(sessions.Usage{CostSource: sessions.CostUnknown}):                                     "not known",
		words.Cost(sessions.Usage{}): "–",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
