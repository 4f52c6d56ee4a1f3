package sessions

import (
	"strings"
	"testing"
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
