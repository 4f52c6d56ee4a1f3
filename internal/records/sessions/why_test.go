package sessions

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestEverySessionThatEndedBadlySaysWhy(t *testing.T) {
	for _, state := range States() {
		why := Ending{State: state}.Why()
		if good := state == StateRunning || state == StateSucceeded; (why == "") != good || strings.Contains(why, "\n") {
			t.Errorf("%s: %q", state, why)
		}
	}
	for want, e := range map[string]Ending{
		"claude exited with code 3; nothing more is recorded": {State: StateFailed, ExitCode: 3},
		"it failed; why is not recorded":                      {State: StateFailed, ExitCode: -1},
		"out of memory, twice": {State: StateFailed, Reason: " out of\n memory,\ttwice\n",
			ExitCode: 3},
	} {
		if got := e.Why(); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// Lists name who started a session as the sentence of the act does.
func TestTheStarterIsNamedAsInTheSentenceOfTheAct(t *testing.T) {
	person := &record.Person{Issuer: "https://id.example", Subject: "7", Name: "company:ann"}
	for want, starter := range map[string]record.Actor{
		"root (uid 0)": record.OSUser("0", "root"),
		"ann":          {Door: record.DoorWeb, Person: person},
		"hook alerts":  {Door: record.DoorWebhook, Client: "hook alerts"},
		"laptop":       {Door: record.DoorREST, Person: person, Credential: &record.Credential{Name: "laptop"}},
	} {
		r := Record{Actor: record.Actor{Session: &record.ActorSession{ID: "5f3a", Starter: &starter}}}
		act := record.Attempt{Actor: starter, Action: record.ActionStartSession}.Act(record.Context{})
		if got := r.Starter(); got != want || act.Who != want {
			t.Errorf("by %q, and %q started it; want %q", got, act.Who, want)
		}
	}
	if got := (Record{}).Starter(); got != "" {
		t.Errorf("of nobody: %q", got)
	}
}
