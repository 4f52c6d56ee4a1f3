//go:build linux

package crash

import (
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

// newQuestioned is a world in which #1 is open and a person has asked about a line.
func newQuestioned(t *testing.T) (*reviewed, request) {
	t.Helper()
	w := newWorld(t)
	first := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
	if a := w.asked(t, first); !a.opened() {
		t.Fatalf("not opened: %+v", a)
	}
	pr := w.assertOne(t, 1, first)
	w.run(t, "review", "request-changes", "1", "--repo", repoKey, "--comment", "Say how.", "--line",
		"checks/inodes.md:1:Why?", "--as", "ann")
	return &reviewed{w, pr.Branch, pr.HeadCommit}, request{
		Owner: repoOwner, Name: repoName, Title: "x", Body: "x", ChangeType: "check", Revises: 1, Files: []file{},
		Reply: "It counts files.", Replies: []reply{{"1.1", "Because they end."}},
	}
}

// assertAnswered holds that both answers are there, once, that nothing else has changed, and that the records say so
// once.
func (w *reviewed) assertAnswered(t *testing.T) {
	t.Helper()
	w.assertNothingReserved(t)
	_, reviews, err := w.store(t).LocalPulls.PR(t.Context(), repoKey, 1)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range reviews {
		all = append(all, r.Body)
		for _, c := range r.Comments {
			all = append(all, c.Body)
		}
	}
	text := strings.Join(all, "\n---\n")
	for _, one := range []string{"It counts files.", "Because they end."} {
		if n := strings.Count(text, one); n != 1 {
			t.Errorf("%q is there %d times:\n%s", one, n, text)
		}
	}
	if commits := w.commits(t); len(commits) != 1 || commits[0] != w.head {
		t.Errorf("the branch has the commits %v", commits)
	}
	revised := 0
	for _, a := range w.attempts(t) {
		if a.Outcome == record.OutcomeRevised {
			revised++
		}
	}
	if revised != 1 {
		t.Errorf("the audit says %d times that it was answered", revised)
	}
}

func TestKillAtEveryStepOfAnAnswer(t *testing.T) {
	for _, step := range []string{"reserved", "answering", "answered", "recorded"} {
		for name, then := range map[string]func(*testing.T, *reviewed, request){
			"the same is asked for again": func(t *testing.T, w *reviewed, r request) {
				if a := w.asked(t, r); a.Number != 1 || !a.Revised {
					t.Errorf("again: %+v", a)
				}
			},
			"pr resume runs": func(t *testing.T, w *reviewed, r request) {
				w.run(t, "pr", "resume")
				if a := w.asked(t, r); a.Number != 1 || a.Replies != 2 {
					t.Errorf("again: %+v", a)
				}
			},
			"the same is asked for by several at once": func(t *testing.T, w *reviewed, r request) {
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						if a := w.asked(t, r); a.Number != 1 {
							t.Errorf("again: %+v", a)
						}
					})
				}
				all.Wait()
			},
		} {
			t.Run("killed when "+step+", then "+name, func(t *testing.T) {
				t.Parallel()
				w, r := newQuestioned(t)
				w.doom(t, doomed{Step: step, Request: r})
				then(t, w, r)
				w.assertAnswered(t)
				w.assertWhole(t)
			})
		}
	}
}
