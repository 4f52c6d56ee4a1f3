package record_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// Each sentence has an actor, a verb, the title, repository and number of the change, and the result.
func TestAnActIsASentence(t *testing.T) {
	on := func(a record.Attempt) record.Attempt {
		a.Owner, a.Repo = "demo", "home"
		return a
	}
	for want, c := range map[string]struct {
		a record.Attempt
		c record.Context
	}{
		`ann merged #3 "Check inodes" in demo/home`: {on(record.Attempt{Door: record.DoorWeb, Caller: "company:ann",
			Action: record.ActionReviewMerge, Outcome: record.OutcomeDone, PRNumber: 3}), record.Context{Title: "Check inodes"}},
		`ann could not approve #3 "Check inodes" in demo/home: The file has changed`: {on(record.Attempt{
			Door: record.DoorWeb, Caller: "company:ann", Action: "review.approve", Outcome: record.OutcomeRefused,
			Code: fault.Conflict, PRNumber: 3}), record.Context{Title: "Check inodes"}},
		"root (uid 0) started a session of tier 2 (session 5f3a): Failed": {record.Attempt{Door: record.DoorCLI,
			Caller: "uid 0 (root)", Action: record.ActionStartSession, Outcome: record.OutcomeDone, Message: "session 5f3a",
			Tier: gitprovider.TierInvestigate}, record.Context{Ended: "Failed"}},
		"uid 0 could not start a session of tier 2: Tier too low": {record.Attempt{Door: record.DoorCLI, Caller: "uid 0",
			Action: record.ActionStartSession, Outcome: record.OutcomeRefused, Code: fault.TierDenied,
			Message: "session limits", Tier: gitprovider.TierInvestigate}, record.Context{}},
		`watcher proposed #4 "Check disks" in demo/home`: {on(record.Attempt{Door: record.DoorMCP,
			Caller: "watcher (claude-code 2.1)", Action: record.ActionCreate, Title: "Check disks", PRNumber: 4,
			Outcome: record.OutcomeOpened}), record.Context{}},
		`watcher was refused "Check disks" in demo/home: Already open`: {on(record.Attempt{Door: record.DoorMCP,
			Caller: "watcher (claude-code 2.1)", Action: record.ActionCreate, Title: "Check disks", PRNumber: 9,
			Outcome: record.OutcomeRefused, Code: fault.DuplicatePR}), record.Context{}},
		`an agent's session revised #4 "Check disks" in demo/home`: {on(record.Attempt{Door: record.DoorMCP, Session: "5f3a",
			Caller: "claude-code 2.1", Action: record.ActionCreate, Title: "Check disks", PRNumber: 4,
			Outcome: record.OutcomeRevised}), record.Context{}},
		`joe opened the dry run #5 "Check disks" in demo/home`: {on(record.Attempt{Door: record.DoorREST, Caller: "joe",
			Action: record.ActionPromote, Title: "Check disks", PRNumber: 5, Outcome: record.OutcomeOpened}), record.Context{}},
		`watcher tried out "Check disks" in demo/home`: {on(record.Attempt{Door: record.DoorMCP, Caller: "watcher (x 1)",
			Action: record.ActionCreate, Title: "Check disks", Outcome: record.OutcomeDryRun}), record.Context{}},
		`Claude Ops could not settle "Check disks" in demo/home: The forge failed`: {on(record.Attempt{Door: record.DoorPoll,
			Action: record.ActionSettle, Title: "Check disks", Outcome: record.OutcomeFailed,
			Code: fault.UpstreamError}), record.Context{}},
		`somebody closed #5 "Check disks" in demo/home`: {on(record.Attempt{Door: record.DoorWebhook,
			Action: record.ActionPullClosed, Title: "Check disks", PRNumber: 5, Outcome: record.OutcomeDone}), record.Context{}},
		`the forge no longer knows #5 in demo/home`: {on(record.Attempt{Door: record.DoorPoll, PRNumber: 5,
			Action: record.ActionPullGone, Outcome: record.OutcomeDone}), record.Context{}},
		"ann made a token": {record.Attempt{Door: record.DoorWeb, Caller: "ann", Action: "token.create",
			Outcome: record.OutcomeDone}, record.Context{}},
		"an agent used deploy_apply": {record.Attempt{Door: record.DoorMCP, Caller: "unknown", Action: "deploy_apply",
			Outcome: record.OutcomeDone}, record.Context{}},
		"somebody tried to use deploy_apply, without writing": {record.Attempt{Door: record.DoorREST, Action: "deploy_apply",
			Outcome: record.OutcomeDryRun}, record.Context{}},
	} {
		must.Equal(t, c.a.Act(c.c).Sentence(strings.TrimSpace), want)
	}
}

func TestARefusalSaysWhichRule(t *testing.T) {
	for rule, want := range map[string]string{
		"secret:aws-key": "Looks like a secret", "file-size": "Too large", "total-size": "Too large",
		"hidden-character": "Hidden characters",
		"binary":           "Not text", "kind:definitions": "Not a valid file of its kind",
	} {
		a := record.Attempt{Code: fault.ContentDenied, Verdicts: []record.Verdict{
			{Violations: []fault.Violation{{Code: fault.ScopeDenied}}},
			{Violations: []fault.Violation{{Code: fault.ContentDenied, Rule: rule}}},
		}}
		if got := a.Refusal(); got != want {
			t.Errorf("%s: %q", rule, got)
		}
	}
	if got := (record.Attempt{Code: fault.DuplicatePR}).Refusal(); got != "Already open" {
		t.Error(got)
	}
}

func TestAnActorIsNamedWithoutVersionAndIssuer(t *testing.T) {
	for _, c := range []struct {
		name    string
		door    record.Door
		session string
		want    string
	}{
		{"claudeops-demo 1", record.DoorMCP, "", "claudeops-demo"},
		{"watcher (claude-code 2.1)", record.DoorMCP, "", "watcher"},
		{"claude-code 2.1", record.DoorMCP, "5f3a", "an agent's session"}, {"unknown", record.DoorMCP, "", "an agent"},
		{"uid 0", record.DoorCLI, "", "uid 0"}, {"uid 1000", record.DoorCLI, "", "uid 1000"},
		{"uid 1000 (joe)", record.DoorCLI, "", "joe (uid 1000)"}, {"joe", record.DoorCLI, "", "joe"},
		{"ann lee", record.DoorWeb, "", "ann lee"}, {"company:ann", record.DoorWeb, "", "ann"},
		{"", record.DoorWebhook, "", "somebody"}, {"", record.DoorREST, "", "somebody"},
	} {
		row := record.Attempt{Caller: c.name, Door: c.door, Session: c.session}
		if got := row.Act(record.Context{}).Who; got != c.want {
			t.Errorf("%q over %s: %q, want %q", c.name, c.door, got, c.want)
		}
	}
}

func TestAUserOfTheSystemHasTheNameFirstAndIsFoundByIt(t *testing.T) {
	for recorded, want := range map[string]string{
		"uid 0 (root)": "root (uid 0)", "uid 1000 (joe (2))": "joe (2) (uid 1000)", "uid 1000": "uid 1000",
		"watcher (claude-code 2.1)": "watcher (claude-code 2.1)", "company:ann": "company:ann", "": "", "joe": "joe",
	} {
		got := record.ReadableCaller(recorded)
		if got != want {
			t.Errorf("%q: %q, want %q", recorded, got, want)
		}
		for _, name := range []string{got, recorded} {
			if back := record.RecordedCaller(name); back != recorded {
				t.Errorf("%q is looked for as %q, want %q", name, back, recorded)
			}
		}
	}
	for _, name := range []string{"root (uid )", "root (uid x)", "root (uid 0", "(uid 0)"} {
		must.Equal(t, record.RecordedCaller(name), name)
	}
}
