// Package follow keeps the records of our pull requests true: it looks at the provider when a webhook says that
// something has happened, and by itself at an interval. What it records is what the provider answers, never what a
// webhook claims, so that a forged, repeated or late delivery causes at most one extra look.
//
// It only reads at providers. The gates do not ask its records.
package follow

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Records stores the last known state of our pull requests. internal/records/store implements it; errors are faults.
type Records interface {
	// FindPull returns the record of a pull request; found is false if it is none of ours.
	FindPull(ctx context.Context, key record.PullKey) (record record.PullRecord, found bool, err error)
	// OpenPullsOf returns the open pull requests of ours whose head is the branch; letter case of ASCII in owner and
	// repository aside.
	OpenPullsOf(ctx context.Context, provider, owner, repo, branch string) ([]record.PullKey, error)
	// DuePulls returns at most limit pull requests of a provider: open ones that were not tried since open, and ended ones
	// that may come back and were not since rest; least recently tried first.
	DuePulls(ctx context.Context, provider string, open, rest time.Time, limit int) ([]record.PullRecord, error)
	// SeePull replaces the record that has seen's version. With it the attempt, if not nil, goes to the audit and the
	// notices to the outbox. ok is false, and nothing is recorded, if the record has changed since.
	SeePull(ctx context.Context, seen record.PullRecord, a *record.Attempt, notices ...record.Notice) (ok bool, err error)
	// TriedPull notes that the provider was asked in vain.
	TriedPull(ctx context.Context, key record.PullKey) error
}

// Shared coordinates the processes that share one store. internal/records/store implements it; errors are faults.
type Shared interface {
	// ClaimRound reports whether the caller should do the named work now: no process has begun it within the interval.
	// next is the time when it is due again.
	ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time, err error)
	// TakeDelivery notes a delivery, and that the pull requests wait for a look; fresh is false if it was noted before.
	TakeDelivery(ctx context.Context, provider, id string, about ...record.PullKey) (fresh bool, err error)
}

// Options configures a Follower. All fields are required except After.
type Options struct {
	Records   Records
	Shared    Shared
	Providers []string // those that are enabled
	// Status asks a provider; see prflow.Reader.StatusAt.
	Status   func(ctx context.Context, provider, owner, repo string, number int) (gitprovider.Status, error)
	Notifier record.Notifier
	Redact   func(text string) string // keeps the values of our own tokens out of the record

	// Every is the interval between looks at open pull requests; 0 disables polling, so that only webhooks cause looks.
	Every time.Duration
	// After is by what the Follower waits for the next round: time.After. nil: it makes none by itself.
	After func(time.Duration) <-chan time.Time
	// Drain limits how long Finish waits for looks that webhooks have asked for.
	Drain time.Duration

	Log   *slog.Logger
	Now   func() time.Time
	NewID func() string // request ids of what is recorded
}

// Follower follows pull requests. It is safe for concurrent use.
type Follower struct {
	Options
	queues map[string]*queue
	stop   chan struct{}
	done   sync.WaitGroup
	cancel context.CancelFunc // ends the looks that webhooks have asked for
}

// New makes a Follower, which does nothing before Begin.
func New(o Options) *Follower {
	f := &Follower{Options: o, queues: map[string]*queue{}, stop: make(chan struct{}), cancel: func() {}}
	for _, provider := range o.Providers {
		f.queues[provider] = newQueue(provider)
	}
	return f
}

// Begin follows until Finish is called. Rounds of the poll end with ctx, too, in the middle if need be.
func (f *Follower) Begin(ctx context.Context) {
	asked, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	for _, q := range f.queues {
		f.done.Go(func() {
			if f.Every <= 0 { // else a round does it
				f.resume(asked, q)
			}
			f.serve(asked, q)
		})
	}
	if f.Every > 0 && f.After != nil {
		f.done.Go(func() { f.poll(ctx) })
	}
}

// Finish ends what Begin has begun: looks that webhooks have asked for are made first, within the Drain. Call it once,
// when no more deliveries come.
func (f *Follower) Finish() {
	close(f.stop)
	ended := make(chan struct{})
	go func() {
		f.done.Wait()
		close(ended)
	}()
	limit := time.NewTimer(f.Drain)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		f.Log.Warn("looks at pull requests that webhooks asked for were left to the next poll")
	}
	f.cancel()
	<-ended
}
