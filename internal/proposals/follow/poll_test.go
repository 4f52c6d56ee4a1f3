package follow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/follow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// everything are records in which each pull request is one of ours, and nothing else is known.
type everything struct{ follow.Records }

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
		if _, err := follow.New(w.options).Round(t.Context()); err != nil {
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
	n.follow = follow.New(n.options)
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
	failing := &failingOnce{Shared: n.store.Rounds}
	n.options.Shared = failing
	n.follow = follow.New(n.options)
	ctx, stop := context.WithCancel(t.Context())
	n.follow.Begin(ctx)
	n.same("seconds", n.looksWithin(2*time.Minute+time.Second), []int{60, 120})
	stop()
	n.follow.Finish()
}

// failingOnce are records that cannot be asked at first.
type failingOnce struct {
	follow.Shared
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
	w.follow = follow.New(w.options)
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
	w.follow = follow.New(w.options)
	_, _ = w.deliver("a", 7)
	w.served()
	w.same("the webhook was heeded", w.host.looks(), []int{7})
}
