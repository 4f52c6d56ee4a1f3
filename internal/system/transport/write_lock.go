package transport

import (
	"context"
	"time"
)

// writeLock lets one writer in at a time. Unlike a mutex it can be waited for with a context.
type writeLock struct {
	free chan time.Time // holds when the last write ended, while no write runs
}

func newWriteLock() writeLock {
	l := writeLock{free: make(chan time.Time, 1)}
	l.free <- time.Time{}
	return l
}

// lock waits for the writer before and returns when the last write ended; ok is false if ctx ended first.
func (l writeLock) lock(ctx context.Context) (last time.Time, ok bool) {
	select {
	case last = <-l.free:
		return last, true
	case <-ctx.Done():
		return time.Time{}, false
	}
}

// unlock lets the next writer in.
func (l writeLock) unlock(ended time.Time) { l.free <- ended }

// startWrite waits until the request may write: for the writer before it and for Limits.WritePause. ok is false if ctx
// ended first. If it is true, done must be called when the write is over.
func (t *Transport) startWrite(ctx context.Context) (done func(), ok bool) {
	last, ok := t.writer.lock(ctx)
	if !ok {
		return nil, false
	}
	rest := time.Duration(0)
	if !last.IsZero() {
		rest = t.opt.Limits.WritePause - t.opt.Clock.Now().Sub(last)
	}
	if !t.pause(ctx, rest) {
		t.writer.unlock(last)
		return nil, false
	}
	return func() { t.writer.unlock(t.opt.Clock.Now()) }, true
}
