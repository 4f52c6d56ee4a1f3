//go:build unix

package resilience

import (
	"fmt"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/keyfile"
)

// newQuestionByProcess is newQuestion with processes: they share records and key with each other, and with the services
// of the world.
func newQuestionByProcess(t *testing.T, k kind, commit bool) *questioned {
	t.Helper()
	w := newWorld(t, k)
	w.asked = w.titled("Check inodes", "# Inodes\n")
	first := w.finished()
	key, err := keyfile.Load(w.stateDir)
	if err != nil {
		t.Fatal(err)
	}
	w.key = string(key)
	return newQuestioned(t, w, first, commit)
}

func TestAProcessThatIsKilledAtWhicheverRequestOfAnAnswerPostsNothingTwice(t *testing.T) {
	for _, k := range kinds() {
		for _, commit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a commit: %t", k.name, commit), func(t *testing.T) {
				t.Parallel()
				killAtEachRequestOfAnAnswer(t, k, commit)
			})
		}
	}
}

func killAtEachRequestOfAnAnswer(t *testing.T, k kind, commit bool) {
	t.Helper()
	undisturbed := newQuestionByProcess(t, k, commit)
	if result := undisturbed.finished(); result.Replies != 3 {
		t.Fatalf("%+v", result)
	}
	undisturbed.assertPosted("undisturbed", true)
	requests := len(undisturbed.forge.Faults().Requests())
	t.Logf("%d requests", requests)
	for n := range requests {
		for _, acts := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d, the server acts: %t", n+1, acts), func(t *testing.T) {
				t.Parallel()
				q := newQuestionByProcess(t, k, commit)
				q.killedAt(n+1, acts)
				q.assertPosted("after the kill", false)
				q.forge.Faults().Forget()
				if again := q.finished(); again.Number != 1 || !again.Revised {
					t.Errorf("the identical call: %+v", again)
				}
				q.settleAll(t.Context())
			})
		}
	}
}
