//go:build linux

package crash

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/pullsync"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
)

const day = 24 * time.Hour

// unheard notifies nobody.
type unheard struct{}

func (unheard) Notices(record.Event, record.Attempt) []record.Notice { return nil }
func (unheard) Kick(context.Context)                                 {}

// look looks at a pull request as a server does whose policy closes it 30 days after an act of a person.
func (d doomed) look(ctx context.Context, records *store.Store, flow *prflow.Service) error {
	flow.Authority.Policy.CloseAfter = 30 * day
	follower := pullsync.New(pullsync.Options{
		Records: records.Pulls, Shared: records.JobClaims, Providers: []string{local.Name}, Notifier: unheard{},
		Status: flow.Reader().StatusAt, Closer: flow.NewStaleCloser(),
		RemindAfter: func() time.Duration { return flow.Authority.Policy.RemindAfter },
		Redact:      func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
		Now: flow.Clock.Now, NewID: flow.NewID,
	})
	return follower.Look(ctx, record.PullKey{Provider: local.Name, Owner: repoOwner, Repo: repoName, Number: d.Look},
		record.DoorPoll)
}

// lookAhead looks at #1 so many times at once, with clocks that are ahead: in this process, and in one more if there
// are several.
func (w *world) lookAhead(t *testing.T, ahead time.Duration, several int) {
	t.Helper()
	d := doomed{Step: "none", Look: 1, Ago: -ahead}
	if several == 1 {
		if err := d.run(t.Context(), w.config()); err != nil {
			t.Fatalf("a look failed: %v", err)
		}
		return
	}
	c := w.startDoomed(t, d)
	var all sync.WaitGroup
	for range several - 1 {
		all.Go(func() { _ = d.run(t.Context(), w.config()) }) // another one may have been first
	}
	all.Wait()
	if killed, code := c.wait(t); killed || code != exitSurvived {
		t.Fatalf("a look ended with %d, killed %t\n%s%s", code, killed, &c.out, &c.err)
	}
}

// TestKillAtEveryStepOfAStaleClose kills the process that closes a stale pull request. Whichever processes go on, there
// is one comment, one close and one row of the audit.
func TestKillAtEveryStepOfAStaleClose(t *testing.T) {
	for _, step := range []string{"", "stale commented", "stale closed"} {
		for _, then := range []int{1, 4} {
			t.Run(fmt.Sprintf("killed at %q, then looked at by %d", step, then), func(t *testing.T) {
				t.Parallel()
				w := newStale(t)
				if step != "" {
					w = worldAfter(t, step, sharesKilled, newStale, func(t *testing.T, w *world) {
						w.doom(t, doomed{Step: step, Look: 1, Ago: -31 * day})
					})
					w.lookAhead(t, 31*day+time.Minute, then) // too early, if it was not closed
				}
				w.lookAhead(t, 31*day+time.Hour, then)
				w.lookAhead(t, 32*day, 1)
				w.assertExpiredOnce(t)
			})
		}
	}
}

// newStale is a world in which #1 is open and was reminded of.
func newStale(t *testing.T) *world {
	t.Helper()
	return worldAfter(t, "stale", true, newWorld, func(t *testing.T, w *world) {
		if a := w.asked(t, newInodes()); !a.opened() {
			t.Fatalf("%+v", a)
		}
		w.lookAhead(t, 8*day, 1)
	})
}

func (w *world) assertExpiredOnce(t *testing.T) {
	t.Helper()
	pr, reviews := w.first(t)
	if pr.State != gitprovider.StateClosed {
		t.Fatalf("it is %s", pr.State)
	}
	comments := 0
	for _, r := range reviews {
		if strings.HasPrefix(r.Body, gitprovider.CloseOpening) {
			comments++
		}
	}
	rows := map[string]int{}
	for _, a := range w.attempts(t) {
		rows[a.Action]++
	}
	if comments != 1 || rows[record.ActionPullStale] != 1 || rows[record.ActionPullExpired] != 1 ||
		rows[record.ActionPullClosed] != 0 {
		t.Errorf("%d comments, rows %v", comments, rows)
	}
	if a := w.asked(t, newInodes()); !a.opened() {
		t.Errorf("the same change again: %+v", a)
	}
	w.assertWhole(t)
}
