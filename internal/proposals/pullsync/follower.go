// Package pullsync keeps the records of our pull requests true: it looks at the provider when a webhook says that
// something has happened, and by itself at an interval. What it records is what the provider answers, never what a
// webhook claims, so that a forged, repeated or late delivery causes at most one extra look.
//
// At providers it only reads, and has a Closer close what nobody acts on. Of its records the gates ask only what we
// closed so.
package pullsync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
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

// Closer closes pull requests on which nobody acts. prflow.StaleCloser implements it.
type Closer interface {
	// After is how long nobody may act on a pull request until it is closed, now; 0: it is not, or may not be.
	After() time.Duration
	// Close closes one, and records nothing. Its errors are faults; paused and read_only: nothing was written.
	Close(ctx context.Context, stale prflow.Stale) error
	// Marked reports whether the body of a pull request says that Close has closed it in the record's time of waiting.
	Marked(was record.PullRecord, pr gitprovider.PullRequest) (bool, error)
}

// Options configures a Follower. All fields are required except After.
type Options struct {
	Records   Records
	Shared    Shared
	Providers []string // those that are enabled
	// Status asks a provider; see prflow.Reader.StatusAt.
	Status   func(ctx context.Context, provider, owner, repo string, number int) (gitprovider.Status, error)
	Notifier record.Notifier
	// RemindAfter is how long nobody may act on a pull request before people are reminded of it, by the policy of the
	// moment; 0: they are not.
	RemindAfter func() time.Duration
	Closer      Closer
	Redact      func(text string) string // keeps the values of our own tokens out of the record

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
			f.serveQueue(asked, q)
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

// Accept queues our pull requests that a delivery is about for a look. taken is false if there are none: then no
// provider is asked, and the delivery is not remembered. Errors: conflict if the delivery was taken before,
// provider_disabled if its provider is not configured.
func (f *Follower) Accept(ctx context.Context, provider string, d forge.Delivery) (taken bool, err error) {
	q := f.queues[provider]
	if q == nil {
		return false, fault.New(fault.ProviderDisabled,
			"the provider %s is not configured, so that nobody could look at its pull "+
				"requests; `claudeops doctor` says what is missing", provider)
	}
	ours, err := f.ourPulls(ctx, provider, d)
	if err != nil {
		return false, err
	}
	if len(ours) == 0 {
		return false, nil
	}
	fresh, err := f.Shared.TakeDelivery(ctx, provider, d.ID, ours...)
	if err != nil {
		return false, err
	}
	if !fresh {
		return false, fault.New(fault.Conflict, "this delivery was taken before; what it is about was looked at then")
	}
	for _, key := range ours {
		if !q.push(key) {
			f.Log.Warn("too many pull requests wait for a look; the poll will see this one", "provider", provider,
				"repo", key.Owner+"/"+key.Repo, "number", key.Number)
		}
	}
	return true, nil
}

// resume lets those pull requests wait again for which a delivery was taken by a process that ended before it looked.
func (f *Follower) resume(ctx context.Context, q *queue) {
	never := time.UnixMicro(0)
	due, err := f.Records.DuePulls(ctx, q.provider, never, never, maxWaiting)
	if err != nil {
		f.Log.Warn("what webhooks have asked for was not looked up", "provider", q.provider, "error",
			f.Redact(fault.From(err).Message))
	}
	for _, r := range due {
		_ = q.push(r.PullKey) // there is room for as many
	}
}

// ourPulls returns the pull requests that a delivery is about and that we opened.
func (f *Follower) ourPulls(ctx context.Context, provider string, d forge.Delivery) ([]record.PullKey, error) {
	if d.Branch != "" {
		return f.Records.OpenPullsOf(ctx, provider, d.Owner, d.Repo, d.Branch)
	}
	var out []record.PullKey
	for _, number := range d.Numbers {
		record, found, err := f.Records.FindPull(ctx, record.PullKey{Provider: provider, Owner: d.Owner, Repo: d.Repo,
			Number: number})
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, record.PullKey)
		}
	}
	return out, nil
}

// maxWaiting bounds the pull requests of one provider that wait for a look.
const maxWaiting = 256

// queue serialises access to one provider: one look at a time, whatever asked for it.
type queue struct {
	provider string
	busy     chan struct{} // holds a token while somebody looks
	wake     chan struct{} // capacity 1: something waits

	mu          sync.Mutex
	waiting     []record.PullKey
	pausedUntil time.Time // the provider asked not to be asked before
}

func newQueue(provider string) *queue {
	return &queue{provider: provider, busy: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// push lets a pull request wait for a look. One that waits already does so once. ok is false if too many wait.
func (q *queue) push(key record.PullKey) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, k := range q.waiting {
		if k == key {
			return true
		}
	}
	if len(q.waiting) >= maxWaiting {
		return false
	}
	q.waiting = append(q.waiting, key)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// pop gives the pull request that waits longest. From then on another event lets it wait again: the look that is about
// to begin may be too early for it.
func (q *queue) pop() (key record.PullKey, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return key, false
	}
	key, q.waiting = q.waiting[0], q.waiting[1:]
	return key, true
}

func (q *queue) paused(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return now.Before(q.pausedUntil)
}

// defaultPause is how long requests to a provider pause after it rate-limited us without giving a time.
const defaultPause = 5 * time.Minute

// pauseIfLimited pauses requests to the provider if err is a rate limit.
func (q *queue) pauseIfLimited(err error, now time.Time) (limited bool) {
	e := fault.From(err)
	if e == nil || e.Code != fault.RateLimited {
		return false
	}
	pause := e.RetryAfter
	if pause <= 0 {
		pause = defaultPause
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pausedUntil = now.Add(pause)
	return true
}

// lookTimeout bounds one look: the provider has tighter limits for each of its requests.
const lookTimeout = time.Minute

// lookAlone looks at a pull request once no other look at this provider is running.
func (f *Follower) lookAlone(ctx context.Context, q *queue, key record.PullKey, by record.Door) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	select {
	case q.busy <- struct{}{}:
		defer func() { <-q.busy }()
	case <-ctx.Done():
		return fault.From(ctx.Err())
	}
	return f.Look(ctx, key, by)
}

// serveQueue makes the looks that webhooks ask for. After stop it makes those that wait, and ends.
func (f *Follower) serveQueue(ctx context.Context, q *queue) {
	for {
		select {
		case <-q.wake:
		case <-f.stop:
			f.serveWaiting(ctx, q)
			return
		}
		f.serveWaiting(ctx, q)
	}
}

func (f *Follower) serveWaiting(ctx context.Context, q *queue) {
	for key, ok := q.pop(); ok && ctx.Err() == nil; key, ok = q.pop() {
		if q.paused(f.Now()) {
			continue // the next round of the poll sees it
		}
		if err := f.lookAlone(ctx, q, key, record.DoorWebhook); err != nil {
			q.pauseIfLimited(err, f.Now())
			f.Log.Warn("a pull request that a webhook is about was not looked at; the poll will", "provider", key.Provider,
				"repo", key.Owner+"/"+key.Repo, "number", key.Number, "error", f.Redact(fault.From(err).Message))
		}
	}
}

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
