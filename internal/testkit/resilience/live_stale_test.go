//go:build live && unix

package resilience

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// A stale pull request of a real Gitea is closed once, may be proposed again at once, and is left open once reopened.
func TestLiveStaleIsClosedOnceAndComesBack(t *testing.T) {
	t.Parallel()
	w := newStale(t, liveKind())
	g := w.forge.(*liveGitea)
	for range 3 {
		if err := w.lookAt(1); err != nil {
			t.Fatal(err)
		}
		w.assertStaleClosed()
		w.pass(time.Hour)
	}
	if status := w.status(1); !strings.Contains(status.Revise, "no cooldown") {
		t.Errorf("the agent is told %q", status.Revise)
	}
	g.must(http.MethodPatch, pullPath(w.repo, 1), map[string]any{"state": "open"}, nil)
	for range 2 {
		if err := w.lookAt(1); err != nil {
			t.Fatal(err)
		}
		w.pass(20 * day)
	}
	if state, comments := w.closings(); state != gitprovider.StateOpen || comments != 1 ||
		w.rows(record.ActionPullReopened) != 1 {
		t.Errorf("after it was reopened it is %s, with %d comments", state, comments)
	}
	g.close(w.repo, 1)
	if err := w.lookAt(1); err != nil {
		t.Fatal(err)
	}
	if w.rows(record.ActionPullClosed) != 1 || w.rows(record.ActionPullExpired) != 1 {
		t.Error("what a person has closed is not recorded as that")
	}
}

func TestLiveStaleMayBeProposedAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := newStale(t, liveKind())
	if err := w.lookAt(1); err != nil {
		t.Fatal(err)
	}
	result, err := w.create(t.Context())
	if err != nil || result.Number != 2 || result.Reused {
		t.Errorf("the same change again: %+v, %v", result, err)
	}
}

// A merge, and a commit, between our last look and the close win.
func TestLiveStaleLosesAgainstAPerson(t *testing.T) {
	t.Parallel()
	w := newStale(t, liveKind())
	g := w.forge.(*liveGitea)
	w.meanwhile(setsText, func() { g.merge(w.repo, 1) })
	_ = w.lookAt(1) // the server refuses
	w.pass(time.Hour)
	if err := w.lookAt(1); err != nil {
		t.Fatal(err)
	}
	if state, _ := w.closings(); state != gitprovider.StateMerged || w.rows(record.ActionPullMerged) != 1 ||
		w.rows(record.ActionPullExpired) != 0 {
		t.Errorf("it is %s", state)
	}
}
