package follow

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

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

// add lets a pull request wait for a look. One that waits already does so once. ok is false if too many wait.
func (q *queue) add(key record.PullKey) (ok bool) {
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

// take gives the pull request that waits longest. From then on another event lets it wait again: the look that is about
// to begin may be too early for it.
func (q *queue) take() (key record.PullKey, ok bool) {
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

// serve makes the looks that webhooks ask for. After stop it makes those that wait, and ends.
func (f *Follower) serve(ctx context.Context, q *queue) {
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
	for key, ok := q.take(); ok && ctx.Err() == nil; key, ok = q.take() {
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
