//go:build live && unix

package resilience

import (
	"testing"
)

// TestLiveRequestsOfTheProgram counts what a process asks of the real server: seven requests for new files, one more
// for a file that is changed, and at most twelve for a revision.
func TestLiveRequestsOfTheProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	count := func(what string, asked []byte, least, most int) {
		t.Helper()
		w.forge.Faults().Forget()
		w.asked = asked
		w.finished()
		n := len(w.forge.Faults().Requests())
		t.Logf("%s: %d requests", what, n)
		if n < least || n > most {
			for _, r := range w.forge.Faults().Requests() {
				t.Log(r.Method, r.Path, r.Query)
			}
			t.Errorf("%s: %d requests, want %d", what, n, most)
		}
	}
	count("new files", w.titled("Check inodes", "# Inodes\n"), 7, 7)
	other := newWorld(t, liveKind())
	w, other = other, w
	count("new files and an updated one", w.request(), 8, 8)
	w = other
	r := newRevisedByProcess(t, liveKind())
	w = r.world
	count("a revision", r.request(), 1, 12)
	r.assertOnce("at the end", true)
}

// TestLiveListOfManyCostsFewRequests is TestAListOfManyCostsFewRequests at the real server.
func TestLiveListOfManyCostsFewRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	withMemory(w)
	w.listsCheaply()
}
