package follow

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of a round, for each provider.
const (
	maxLooks    = 50
	maxFailures = 3              // in a row; then the provider is left alone until the next round
	restEvery   = 24 * time.Hour // how often pull requests are looked at that are closed or gone
)

// round is the name of the poll among what processes share.
const round = "poll"

const (
	// firstWait is the wait after a server's start before the first check whether a round is due.
	firstWait = 30 * time.Second
	// longestWait is the maximum wait before the clock is read again: a clock may be set, a machine may sleep.
	longestWait = time.Minute
	// retryWait is the wait after the records could not be read.
	retryWait = 30 * time.Second
)

// poll makes a round whenever one is due: an interval after the last one was begun, by whatever process.
func (f *Follower) poll(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.done.Go(func() {
		select {
		case <-f.stop:
		case <-ctx.Done():
		}
		cancel()
	})
	for wait := firstWait; ; {
		select {
		case <-f.After(wait):
		case <-ctx.Done():
			return
		}
		next, err := f.Round(ctx)
		wait = min(max(next.Sub(f.Now()), 0), longestWait)
		if err != nil {
			wait = retryWait
		}
		if err != nil && ctx.Err() == nil {
			f.Log.Warn("pull requests were not looked at", "error", f.Redact(fault.From(err).Message))
		}
	}
}

// Round looks at the pull requests that are due, unless another process has begun to within the interval: at most 50 of
// each provider, one at a time, and no more once it fails or asks us to wait. What was looked at lately, because of a
// webhook perhaps, is left out. next is when a round is due again.
func (f *Follower) Round(ctx context.Context) (next time.Time, err error) {
	mine, next, err := f.Shared.ClaimRound(ctx, round, f.Every)
	if err != nil || !mine {
		return next, err
	}
	var looks sync.WaitGroup
	for _, q := range f.queues {
		looks.Go(func() { f.roundAt(ctx, q) })
	}
	looks.Wait()
	return next, nil
}

func (f *Follower) roundAt(ctx context.Context, q *queue) {
	now := f.Now()
	if q.paused(now) {
		return
	}
	due, err := f.Records.DuePulls(ctx, q.provider, now.Add(-f.Every/2), now.Add(-restEvery), maxLooks)
	failures := 0
	for _, r := range due {
		looked := f.lookAlone(ctx, q, r.PullKey, record.DoorPoll)
		if ctx.Err() != nil {
			return
		}
		if looked == nil {
			failures = 0
			continue
		}
		err = looked
		if q.pauseIfLimited(looked, f.Now()) {
			break
		}
		if tried := f.Records.TriedPull(ctx, r.PullKey); tried != nil {
			err = tried
			break
		}
		if fault.CodeOf(looked).Ambiguous() { // it is about the provider rather than about one pull request
			failures++
		}
		if failures == maxFailures {
			break
		}
	}
	if err != nil && ctx.Err() == nil {
		f.Log.Warn("the poll did not see every pull request", "provider", q.provider, "error",
			f.Redact(fault.From(err).Message))
	}
}
