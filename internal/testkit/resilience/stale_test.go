package resilience

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/pullsync"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

const day = 24 * time.Hour

// unheard notifies nobody.
type unheard struct{}

func (unheard) Notices(record.Event, record.Attempt) []record.Notice { return nil }
func (unheard) Kick(context.Context)                                 {}

// newStale has a pull request that is due to be closed at the next look: nobody has acted on it.
func newStale(t *testing.T, k kind) *world {
	t.Helper()
	w := newWorld(t, k)
	w.policy.CloseAfter = 30 * day
	if _, err := w.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.pass(8 * day)
	if err := w.lookAt(1); err != nil { // people are reminded
		t.Fatal(err)
	}
	w.pass(23 * day)
	w.forge.Faults().Forget()
	return w
}

// lookAt looks at a pull request as a server does that has just started.
func (w *world) lookAt(number int) error {
	flow := w.service()
	follower := pullsync.New(pullsync.Options{
		Records: w.store.Pulls, Shared: w.store.JobClaims, Providers: []string{w.kind.name}, Notifier: unheard{},
		Status: flow.Reader().StatusAt, Closer: flow.NewStaleCloser(),
		RemindAfter: func() time.Duration { return w.policy.RemindAfter },
		Redact:      func(text string) string { return text },
		Log:         slog.New(slog.DiscardHandler), Now: w.now, NewID: flow.NewID,
	})
	return follower.Look(w.t.Context(), record.PullKey{Provider: w.kind.name, Owner: w.repo.Owner, Repo: w.repo.Name,
		Number: number}, record.DoorPoll)
}

// closings returns the state of the pull request, and how often it says why we closed it.
func (w *world) closings() (state gitprovider.State, comments int) {
	w.t.Helper()
	p := w.kind.connect(w.t, w.forge, transport.Options{Log: slog.New(slog.DiscardHandler),
		Clock: transport.Clock{Now: w.now}})
	status, err := p.Status(w.t.Context(), w.repo, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	remarks, err := p.(gitprovider.RemarkReader).Remarks(w.t.Context(), w.repo, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range remarks {
		if strings.HasPrefix(r.Body, gitprovider.CloseOpening) {
			comments++
		}
	}
	return status.State, comments
}

// rows counts the rows of the audit with an action.
func (w *world) rows(action string) (n int) {
	w.t.Helper()
	for _, r := range w.audit() {
		if r.Action == action {
			n++
		}
	}
	return n
}

// assertStaleClosed demands one close, one comment and one row.
func (w *world) assertStaleClosed() {
	w.t.Helper()
	state, comments := w.closings()
	if rows := w.rows(record.ActionPullExpired); state != gitprovider.StateClosed || comments != 1 || rows != 1 ||
		w.rows(record.ActionPullClosed) != 0 {
		w.t.Errorf("it is %s, with %d comments and %d rows", state, comments, rows)
	}
}

// TestWhateverGoesWrongAStalePullRequestIsClosedOnce is the fault table of the close.
func TestWhateverGoesWrongAStalePullRequestIsClosedOnce(t *testing.T) {
	for _, k := range prompt() {
		t.Run(k.title(), func(t *testing.T) { t.Parallel(); closeInTrouble(t, k) })
	}
}

func closeInTrouble(t *testing.T, k kind) {
	w := newStale(t, k)
	if err := w.lookAt(1); err != nil {
		t.Fatal(err)
	}
	w.assertStaleClosed()
	undisturbed := sequenceOf(w.forge.Faults().Requests())
	elsewhere := other(t)
	for n := 1; n <= len(undisturbed); n++ {
		for i, tr := range troubles(elsewhere) {
			stalls := tr.fault.Kind == httpfault.Stall || tr.fault.Kind == httpfault.StallAfter
			if !k.meets(undisturbed, n, tr, i, k.triesAgain) || stalls || tr.fault.Kind == httpfault.Oversized {
				continue
			}
			t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
				t.Parallel()
				w := newStale(t, k)
				w.plan(tr, n)
				_ = w.lookAt(1)
				w.forge.Faults().Forget()
				for range 3 {
					w.pass(20 * time.Minute)
					if err := w.lookAt(1); err != nil {
						t.Error(err)
					}
				}
				w.assertStaleClosed()
			})
		}
	}
}
