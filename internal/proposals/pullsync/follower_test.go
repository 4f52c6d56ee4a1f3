package pullsync_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/proposals/pullsync"
	"github.com/claudeops/claudeops/internal/records/record"
)

func delivery(id string, numbers ...int) forge.Delivery {
	return forge.Delivery{ID: id, Event: "pull_request", Owner: "joe", Repo: "infra", Numbers: numbers}
}

func TestADeliveryLeadsToOneLookAtWhatIsOurs(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.host.merge(7, "ann")
	w.host.set(9, func(st *gitprovider.Status) { st.State = gitprovider.StateOpen }) // somebody else's
	for _, row := range []struct {
		id      string
		numbers []int
		taken   bool
		code    fault.Code
	}{
		{"a", []int{7, 9}, true, ""}, {"b", []int{9}, false, ""}, {"b", []int{9}, false, ""}, {"c", nil, false, ""},
		{"a", []int{7}, false, fault.Conflict}, {"a", []int{8}, false, fault.Conflict}, {"d", []int{7}, true, ""},
	} {
		taken, err := w.deliver(row.id, row.numbers...)
		if taken != row.taken || fault.CodeOf(err) != row.code {
			t.Errorf("%v: taken %t, %v", row, taken, err)
		}
	}
	w.same("looks before anybody serves", w.host.looks(), []int(nil))
	w.served()
	w.same("looks", w.host.looks(), []int{7})
	w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
	other := delivery("e", 7)
	other.Repo = "other"
	if taken, err := w.follow.Accept(t.Context(), "github", other); taken || err != nil {
		t.Errorf("another repository: %t, %v", taken, err)
	}
	if taken, err := w.follow.Accept(t.Context(), "gitea", delivery("f", 7)); taken ||
		fault.CodeOf(err) != fault.ProviderDisabled {
		t.Errorf("a provider that is disabled: %t, %v", taken, err)
	}
	w.served()
	w.same("looks after all", w.host.looks(), []int(nil))
}

func TestAPushToTheBranchOfAPullRequestRecordsItsNewHead(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.host.set(7, func(st *gitprovider.Status) { st.HeadCommit = "beef" })
	push := func(id, branch string) bool {
		t.Helper()
		taken, err := w.follow.Accept(t.Context(), "github", forge.Delivery{ID: id, Event: "push", Owner: "Joe",
			Repo: "INFRA", Branch: branch})
		if err != nil {
			t.Error(err)
		}
		return taken
	}
	w.same("taken", []bool{push("a", "branch-7"), push("b", "branch-9"), push("c", "BRANCH-7")},
		[]bool{true, false, false})
	w.served()
	w.same("looks", w.host.looks(), []int{7})
	w.same("head", w.record(7).Head, "beef")
	w.host.merge(7, "ann")
	w.round()
	w.same("a push to what was merged is taken", push("d", "branch-7"), false)
}

func TestDeliveriesThatComeInAnyOrderLeadToTheSameRecord(t *testing.T) {
	for _, order := range [][]string{{"opened", "merged", "pushed"}, {"merged", "pushed", "opened"},
		{"pushed", "opened", "merged"}} {
		w := newWorld(t, 7)
		w.host.merge(7, "ann")
		for _, id := range order {
			if _, err := w.deliver(id, 7); err != nil {
				t.Error(err)
			}
			w.served()
		}
		w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
		w.same("notices", w.told(), []string{`merged {"number":7,"by":"ann"}`})
	}
}

func TestAnEventDuringALookLeadsToAnother(t *testing.T) {
	w := newWorld(t, 7)
	first := true
	w.host.after = func(int) {
		if !first {
			return
		}
		first = false
		w.host.merge(7, "ann")
		w.mustDeliver("b", 7)
	}
	_, _ = w.deliver("a", 7)
	w.served()
	w.same("looks", w.host.looks(), []int{7, 7})
	w.same("state", w.record(7).State, gitprovider.StateMerged)
}

func TestWhatIsTooMuchIsLeftToThePoll(t *testing.T) {
	var numbers []int
	for n := range 260 {
		numbers = append(numbers, n+1)
	}
	w := newWorld(t)
	w.options.Records = everything{w.store.Pulls}
	w.follow = pullsync.New(w.options)
	for _, n := range numbers {
		w.mustDeliver(fmt.Sprint(n), n)
	}
	w.served()
	w.same("looks", w.host.looks(), numbers[:256])
}

func TestAServerThatEndsLooksFirst(t *testing.T) {
	w := newWorld(t, 7, 8)
	entered, release := make(chan int), make(chan struct{})
	w.host.before = func(_ context.Context, number int) {
		entered <- number
		<-release
	}
	ctx, stop := context.WithCancel(t.Context())
	w.follow.Begin(ctx)
	_, _ = w.deliver("a", 7)
	w.same("entered", <-entered, 7)
	_, _ = w.deliver("b", 8)
	stop()
	ended := make(chan struct{})
	go func() {
		w.follow.Finish()
		close(ended)
	}()
	release <- struct{}{}
	w.same("entered", <-entered, 8)
	release <- struct{}{}
	<-ended
	w.same("looks", w.host.looks(), []int{7, 8})
}

func TestAServerThatEndsDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.options.Drain = time.Millisecond
	w.follow = pullsync.New(w.options)
	entered := make(chan struct{})
	w.host.before = func(ctx context.Context, _ int) {
		close(entered)
		<-ctx.Done()
	}
	w.host.fail(7, fault.New(fault.Timeout, "cancelled"))
	w.follow.Begin(t.Context())
	_, _ = w.deliver("a", 7)
	<-entered
	_, _ = w.deliver("b", 8)
	w.follow.Finish()
	w.same("looks", w.host.looks(), []int{7})
}

// A process may be killed between a delivery and the look. The sender does not send it again, and without polling no
// other look would happen.
func TestWhatWasTakenAndNotLookedAtIsLookedAtByTheNextProcess(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.round() // looks at both
	w.host.looks()
	w.advance(time.Minute)
	w.host.merge(7, "ann")
	w.mustDeliver("a", 7)
	w.options.Every = 0
	w.follow = pullsync.New(w.options) // of another process
	w.served()
	w.same("looks", w.host.looks(), []int{7})
	w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
	w.served()
	w.same("looks after that", w.host.looks(), []int(nil))
}

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
	w.mustDeliver("a", 7)
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

// People are reminded once of what waits for them, and again after one of them has acted on it and it waits anew.
func TestPeopleAreRemindedOnceOfWhatNobodyHasActedOn(t *testing.T) {
	for name, act := range map[string]func(w *world){
		"a comment": func(w *world) {
			w.host.review(7, gitprovider.Review{Author: "ann", State: gitprovider.ReviewCommented, SubmittedAt: w.Now()})
		},
		"a label":  func(w *world) { w.host.set(7, func(st *gitprovider.Status) { st.Labels = []string{"hold"} }) },
		"a commit": func(w *world) { w.host.set(7, func(st *gitprovider.Status) { st.HeadCommit = "beef" }) },
		"nothing":  func(*world) {},
		"a bot's comment": func(w *world) {
			w.host.review(7, gitprovider.Review{Author: "ci[bot]", State: gitprovider.ReviewCommented, SubmittedAt: w.Now()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 7)
			w.remind.Store(int64(7 * day))
			reminders := func(want int) {
				t.Helper()
				w.round()
				n := 0
				for _, row := range w.rows() {
					if strings.HasPrefix(row, record.ActionPullStale) {
						n++
					}
				}
				if n != want {
					t.Fatalf("%d reminders, want %d: %v", n, want, w.rows())
				}
			}
			w.advance(6 * day)
			reminders(0)
			w.advance(day)
			reminders(1)
			reminders(1)
			if !w.record(7).Reminded() {
				t.Error("the record does not say so")
			}
			act(w)
			reminders(1)
			restarted := !w.record(7).Reminded()
			if want := name != "nothing" && name != "a bot's comment"; restarted != want {
				t.Errorf("the time began anew: %t", restarted)
			}
			w.advance(6 * day)
			reminders(1)
			w.advance(2 * day)
			reminders(map[bool]int{true: 2, false: 1}[restarted])
			w.same("notices", len(w.told()), len(w.rows()))
		})
	}
	w := newWorld(t, 7)
	w.host.review(7, gitprovider.Review{Author: "ann", State: gitprovider.ReviewChangesRequested, SubmittedAt: w.Now()})
	w.remind.Store(int64(7 * day))
	w.advance(8 * day)
	w.round()
	w.same("rows where the agent is to act", len(w.rows()), 0)
	w.host.set(7, func(st *gitprovider.Status) { st.Reviews = nil })
	w.remind.Store(0)
	w.round()
	w.same("rows where the policy wants no reminders", len(w.rows()), 0)
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
	for _, r := range []struct {
		author string
		state  gitprovider.ReviewState
		want   [2]int
	}{
		{"ann", gitprovider.ReviewApproved, [2]int{1, 0}}, {"bob", gitprovider.ReviewChangesRequested, [2]int{1, 1}},
		{"ann", gitprovider.ReviewCommented, [2]int{1, 1}}, {"bob", gitprovider.ReviewPending, [2]int{1, 1}},
		{"bob", gitprovider.ReviewApproved, [2]int{2, 0}}, {"ann", gitprovider.ReviewDismissed, [2]int{1, 0}},
	} {
		w.host.review(7, gitprovider.Review{Author: r.author, State: r.state, Body: "words"})
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
		other := pullsync.New(w.options)
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
			f := pullsync.New(w.options)
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

// everything are records in which each pull request is one of ours, and nothing else is known.
type everything struct{ pullsync.Records }

func (everything) FindPull(_ context.Context, k record.PullKey) (record.PullRecord, bool, error) {
	return record.PullRecord{PullKey: k}, true, nil
}

func (everything) SeePull(context.Context, record.PullRecord, *record.Attempt, ...record.Notice) (bool, error) {
	return true, nil
}

func TestARoundIsMadeByOneProcessAndLeavesOutWhatWasJustSeen(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.advance(10 * time.Minute)
	_, _ = w.deliver("a", 7)
	w.served()
	w.same("looks of the webhook", w.host.looks(), []int{7})
	for range 3 {
		if _, err := pullsync.New(w.options).Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.same("looks of three processes", w.host.looks(), []int{8})
	w.round()
	w.same("looks of the next round", sorted(w.host.looks()), []int{7, 8})
}

func TestARoundIsBoundedAndTheNextOneGoesOn(t *testing.T) {
	w := newWorld(t)
	for n := range 60 {
		w.open(n + 1)
	}
	w.round()
	w.same("looks", len(w.host.looks()), 50)
	w.round()
	w.same("the next begins with the others", sorted(w.host.looks()[:10]), []int{51, 52, 53, 54, 55, 56, 57, 58, 59, 60})
}

func TestAProviderThatLimitsUsIsLeftAlone(t *testing.T) {
	for name, row := range map[string]struct {
		says   time.Duration
		rounds int // without a request
	}{"and says for how long": {12 * time.Minute, 2}, "and does not say": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 7, 8, 9)
			limited := fault.New(fault.RateLimited, "too many requests")
			limited.RetryAfter = row.says
			w.host.fail(0, limited)
			w.round()
			w.same("looks", len(w.host.looks()), 1)
			w.host.fail(0, nil)
			for range row.rounds {
				_, _ = w.deliver(fmt.Sprint(w.Now()), 7)
				w.round()
			}
			w.same("looks while it rests", len(w.host.looks()), 0)
			w.round()
			w.same("looks after", len(w.host.looks()), 3)
		})
	}
}

func TestAProviderThatIsDownIsNotHammeredAndNothingIsRecorded(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5)
	w.round()
	w.host.looks()
	before := w.record(1)
	w.host.fail(0, fault.New(fault.UpstreamError, "bad gateway"))
	w.round()
	w.same("looks", w.host.looks(), []int{1, 2, 3})
	w.round()
	w.same("looks of the next round", w.host.looks(), []int{4, 5, 1})
	after := w.record(1)
	after.TriedAt = before.TriedAt
	w.same("record", after, before)
	w.host.fail(0, nil)
	w.host.merge(2, "ann")
	w.round()
	w.same("audit", w.rows(), []string{`pull.merged #2 poll by "ann"`})
}

func TestOneThatMayNotBeReadDoesNotKeepTheOthersFromBeingSeen(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5)
	for n := range 4 {
		w.host.fail(n+1, fault.New(fault.RepoNotAllowed, "the repository is not on the list any more"))
	}
	w.host.merge(5, "ann")
	w.round()
	w.same("looks", w.host.looks(), []int{1, 2, 3, 4, 5})
	w.same("states", []any{w.record(1).State, w.record(5).State}, []any{gitprovider.StateOpen, gitprovider.StateMerged})
}

// napping is a poll that waits by the test's clock.
type napping struct {
	*world
	naps chan time.Duration
	wake chan time.Time
}

func newNapping(t *testing.T, every time.Duration, numbers ...int) *napping {
	t.Helper()
	n := &napping{newWorld(t, numbers...), make(chan time.Duration), make(chan time.Time)}
	n.options.Every = every
	n.options.After = func(d time.Duration) <-chan time.Time {
		select {
		case n.naps <- d:
		case <-t.Context().Done():
		}
		return n.wake
	}
	n.follow = pullsync.New(n.options)
	return n
}

// looksWithin lets the time pass, with the naps of the poll, and says after how many seconds it looked. A look takes a
// moment.
func (n *napping) looksWithin(d time.Duration) (seconds []int) {
	n.Helper()
	begun := n.Now()
	for wait := range n.naps {
		if n.Now().Sub(begun) > d {
			return seconds
		}
		if len(n.host.looks()) > 0 {
			seconds = append(seconds, int(n.Now().Sub(begun).Seconds()))
		}
		n.advance(wait + time.Millisecond) // timers are late
		n.wake <- n.Now()
	}
	return nil
}

func TestThePollLooksAtItsInterval(t *testing.T) {
	for every, want := range map[time.Duration][]int{
		30 * time.Second: {30, 60, 90, 120, 150, 180, 210, 240},
		45 * time.Second: {30, 75, 120, 165, 210},
		2 * time.Minute:  {30, 150},
	} {
		t.Run(every.String(), func(t *testing.T) {
			n := newNapping(t, every, 7)
			ctx, stop := context.WithCancel(t.Context())
			n.follow.Begin(ctx)
			n.same("seconds", n.looksWithin(4*time.Minute+time.Second), want)
			stop()
			n.follow.Finish()
		})
	}
}

func TestThePollGoesOnWhenTheRecordsCouldNotBeAsked(t *testing.T) {
	n := newNapping(t, time.Minute, 7)
	failing := &failingOnce{Shared: n.store.JobClaims}
	n.options.Shared = failing
	n.follow = pullsync.New(n.options)
	ctx, stop := context.WithCancel(t.Context())
	n.follow.Begin(ctx)
	n.same("seconds", n.looksWithin(2*time.Minute+time.Second), []int{60, 120})
	stop()
	n.follow.Finish()
}

// failingOnce are records that cannot be asked at first.
type failingOnce struct {
	pullsync.Shared
	failed bool
}

func (f *failingOnce) ClaimRound(ctx context.Context, name string, every time.Duration) (bool, time.Time, error) {
	if !f.failed {
		f.failed = true
		return false, time.Time{}, fault.New(fault.Internal, "the disk is full")
	}
	return f.Shared.ClaimRound(ctx, name, every)
}

func TestThePollEndsWithTheServer(t *testing.T) {
	w := newWorld(t, 7)
	wake, asked := make(chan time.Time), make(chan struct{})
	w.options.After = func(time.Duration) <-chan time.Time { return wake }
	w.follow = pullsync.New(w.options)
	w.host.before = func(ctx context.Context, _ int) {
		asked <- struct{}{}
		<-ctx.Done() // a look that is under way ends with the server
	}
	w.host.fail(7, fault.New(fault.Timeout, "cancelled"))
	ctx, stop := context.WithCancel(t.Context())
	w.follow.Begin(ctx)
	w.advance(time.Hour)
	wake <- w.Now()
	<-asked
	stop()
	w.follow.Finish()
	r := w.record(7)
	w.same("nothing was recorded", []any{r.TriedAt.IsZero(), r.State}, []any{true, gitprovider.StateOpen})
}

func TestWithoutAnIntervalNobodyPolls(t *testing.T) {
	w := newWorld(t, 7)
	w.options.Every = 0
	w.options.After = func(time.Duration) <-chan time.Time {
		t.Error("the poll waits for its time")
		return nil
	}
	w.follow = pullsync.New(w.options)
	_, _ = w.deliver("a", 7)
	w.served()
	w.same("the webhook was heeded", w.host.looks(), []int{7})
}
