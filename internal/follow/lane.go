package follow

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// maxWaiting bounds the pull requests of one provider that wait for a look.
const maxWaiting = 256

// lane is the way to one provider: one look at a time, whoever asks for it.
type lane struct {
	provider string
	turn     chan struct{} // holds a token while somebody looks
	wake     chan struct{} // capacity 1: something waits

	mu      sync.Mutex
	waiting []record.PullKey
	rest    time.Time // the provider asked not to be asked before
}

func newLane(provider string) *lane {
	return &lane{provider: provider, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// add lets a pull request wait for a look. One that waits already does so once. ok is false if too many wait.
func (l *lane) add(key record.PullKey) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.waiting {
		if k == key {
			return true
		}
	}
	if len(l.waiting) >= maxWaiting {
		return false
	}
	l.waiting = append(l.waiting, key)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

// take gives the pull request that waits longest. From then on another event lets it wait again: the look that is about to
// begin may be too early for it.
func (l *lane) take() (key record.PullKey, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return key, false
	}
	key, l.waiting = l.waiting[0], l.waiting[1:]
	return key, true
}

func (l *lane) resting(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.rest)
}

// defaultRest is how long a provider is left alone that limits us and does not say for how long.
const defaultRest = 5 * time.Minute

// heed lets the provider rest if that is what it asks for.
func (l *lane) heed(err error, now time.Time) (rests bool) {
	e := fault.From(err)
	if e == nil || e.Code != fault.RateLimited {
		return false
	}
	pause := e.RetryAfter
	if pause <= 0 {
		pause = defaultRest
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = now.Add(pause)
	return true
}

// lookTimeout bounds one look: the provider has tighter limits for each of its requests.
const lookTimeout = time.Minute

// inTurn looks at a pull request when nobody else looks at this provider.
func (f *Follower) inTurn(ctx context.Context, l *lane, key record.PullKey, by record.Door) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return fault.From(ctx.Err())
	}
	return f.look(ctx, key, by)
}

// serve makes the looks that webhooks ask for. After stop it makes those that wait, and ends.
func (f *Follower) serve(ctx context.Context, l *lane) {
	for {
		select {
		case <-l.wake:
		case <-f.stop:
			f.serveWaiting(ctx, l)
			return
		}
		f.serveWaiting(ctx, l)
	}
}

func (f *Follower) serveWaiting(ctx context.Context, l *lane) {
	for key, ok := l.take(); ok && ctx.Err() == nil; key, ok = l.take() {
		if l.resting(f.Now()) {
			continue // the next round of the poll sees it
		}
		if err := f.inTurn(ctx, l, key, record.DoorWebhook); err != nil {
			l.heed(err, f.Now())
			f.Log.Warn("a pull request that a webhook is about was not looked at; the poll will", "provider", key.Provider,
				"repo", key.Owner+"/"+key.Repo, "number", key.Number, "error", f.Redact(fault.From(err).Message))
		}
	}
}
