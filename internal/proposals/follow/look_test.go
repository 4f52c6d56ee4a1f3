package follow_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/follow"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestAMergeIsRecordedAndToldOnce(t *testing.T) {
	w := newWorld(t, 7)
	w.host.merge(7, "ann\u200b")
	w.round()
	r := w.record(7)
	w.same("record", []any{r.State, r.EndedBy, r.EndedAt, r.SeenBy, r.SeenAt},
		[]any{gitprovider.StateMerged, "ann", noon().Add(time.Second), record.DoorPoll, w.Now()})
	rows, told := []string{`pull.merged #7 poll by "ann"`}, []string{`merged {"number":7,"by":"ann"}`}
	w.same("audit", w.rows(), rows)
	w.same("notices", w.told(), told)
	w.same("deliveries were begun", w.changed.Load(), int64(1))

	w.host.reopen(7) // which no forge lets anybody do
	if taken, err := w.deliver("a", 7); !taken || err != nil {
		t.Fatal(taken, err)
	}
	w.served()
	w.round()
	w.same("state", w.record(7).State, gitprovider.StateMerged)
	w.same("audit after all", w.rows(), rows)
	w.same("notices after all", w.told(), told)
}

func TestClosingAndReopeningAreFollowed(t *testing.T) {
	w := newWorld(t, 7)
	w.host.close(7, noon())
	w.round()
	w.same("closed", w.record(7).State, gitprovider.StateClosed)
	w.host.reopen(7)
	w.round() // ended ones are looked at once a day
	w.same("still closed", w.record(7).State, gitprovider.StateClosed)
	w.advance(24 * time.Hour)
	w.round()
	w.same("reopened", w.record(7).State, gitprovider.StateOpen)
	w.host.close(7, noon().Add(48*time.Hour))
	w.round()
	w.same("audit", w.rows(), []string{`pull.closed #7 poll by ""`, `pull.reopened #7 poll by ""`,
		`pull.closed #7 poll by ""`})
	w.same("notices", w.told(), []string{`closed {"number":7,"by":""}`, `closed {"number":7,"by":""}`})
}

func TestAnAnswerThatIsOutOfDateTellsNobodyTwice(t *testing.T) {
	w := newWorld(t, 7)
	w.host.close(7, noon())
	w.round()
	w.host.reopen(7) // as a replica that lags behind sees it
	_, _ = w.deliver("a", 7)
	w.served()
	w.host.close(7, noon())
	_, _ = w.deliver("b", 7)
	w.served()
	w.same("state", w.record(7).State, gitprovider.StateClosed)
	w.same("notices", w.told(), []string{`closed {"number":7,"by":""}`})
}

func TestReviewsHeadAndChecksAreRecordedWithoutWords(t *testing.T) {
	w := newWorld(t, 7)
	review := func(author string, state gitprovider.ReviewState) {
		w.host.set(7, func(st *gitprovider.Status) {
			st.Reviews = append(st.Reviews, gitprovider.Review{Author: author, State: state, Body: "words"})
		})
	}
	for _, r := range []struct {
		author string
		state  gitprovider.ReviewState
		want   [2]int
	}{
		{"ann", gitprovider.ReviewApproved, [2]int{1, 0}}, {"bob", gitprovider.ReviewChangesRequested, [2]int{1, 1}},
		{"ann", gitprovider.ReviewCommented, [2]int{1, 1}}, {"bob", gitprovider.ReviewPending, [2]int{1, 1}},
		{"bob", gitprovider.ReviewApproved, [2]int{2, 0}}, {"ann", gitprovider.ReviewDismissed, [2]int{1, 0}},
	} {
		review(r.author, r.state)
		w.round()
		got := w.record(7)
		w.same(r.author+" "+string(r.state), [2]int{got.Approvals, got.ChangesRequested}, r.want)
	}
	before := w.record(7)
	w.round()
	after := w.record(7)
	w.same("nothing changed", []any{after.UpdatedAt, after.SeenAt}, []any{before.UpdatedAt, w.Now()})
	w.host.set(7, func(st *gitprovider.Status) { st.HeadCommit, st.Checks.State = "beef", gitprovider.ChecksFailure })
	w.round()
	got := w.record(7)
	w.same("head and checks", []any{got.Head, got.Checks, got.UpdatedAt},
		[]any{"beef", gitprovider.ChecksFailure, w.Now()})
	w.same("audit", w.rows(), []string(nil))
	w.same("notices", w.told(), []string(nil))
}

func TestALookThatWasOvertakenIsMadeAgain(t *testing.T) {
	w := newWorld(t, 7)
	overtaken := false
	w.host.after = func(int) { // the answer "open" is on its way, and somebody else sees the merge
		if overtaken {
			return
		}
		overtaken = true
		w.host.merge(7, "ann")
		other := follow.New(w.options)
		if _, err := other.Accept(context.Background(), "github", delivery("other", 7)); err != nil {
			t.Error(err)
		}
		other.Begin(context.Background())
		other.Finish()
	}
	w.round()
	w.same("looks", w.host.looks(), []int{7, 7, 7})
	w.same("state", w.record(7).State, gitprovider.StateMerged)
	w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
	w.same("notices", w.told(), []string{`merged {"number":7,"by":"ann"}`})
}

func TestTenFollowersThatHearOfOneMergeRecordItOnce(t *testing.T) {
	w := newWorld(t, 7)
	w.host.merge(7, "ann")
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			f := follow.New(w.options)
			if _, err := f.Accept(context.Background(), "github", delivery(fmt.Sprint("delivery-", i), 7)); err != nil {
				t.Error(err)
			}
			f.Begin(context.Background())
			f.Finish()
		})
	}
	all.Wait()
	w.same("looks are at least one each", len(w.host.looks()) >= 10, true)
	w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
	w.same("notices", w.told(), []string{`merged {"number":7,"by":"ann"}`})
}

func TestWhatTheProviderForgetsIsGoneAfterAWhileAndNotMerged(t *testing.T) {
	w := newWorld(t, 7)
	w.round()
	w.host.fail(7, fault.New(fault.NotFound, "there is no pull request 7"))
	for range 11 { // 55 minutes
		w.round()
		w.same("state", w.record(7).State, gitprovider.StateOpen)
	}
	w.round()
	w.same("state after an hour", w.record(7).State, record.StateGone)
	w.round()
	w.same("audit", w.rows(), []string{`pull.gone #7 poll by ""`})
	w.host.fail(7, nil)
	w.host.merge(7, "ann")
	w.advance(24 * time.Hour)
	w.round()
	w.same("state after all", w.record(7).State, gitprovider.StateMerged)
	w.same("notices", w.told(), []string{`merged {"number":7,"by":"ann"}`})

	w = newWorld(t, 8)
	w.host.fail(8, fault.New(fault.NotFound, "there is no pull request 8"))
	w.advance(3 * time.Hour)
	w.round()
	w.round()
	w.same("state after two looks", w.record(8).State, gitprovider.StateOpen)
	w.host.fail(8, nil)
	w.round()
	w.same("misses", w.record(8).Misses, 0)
}
