package transport

import (
	"context"
	"time"
)

// turn lets one writer in at a time. Unlike a mutex it can be waited for with a context.
type turn struct {
	free chan time.Time // holds when the last write ended, while nobody writes
}

func newTurn() turn {
	t := turn{free: make(chan time.Time, 1)}
	t.free <- time.Time{}
	return t
}

// take waits for the turn and returns when the last write ended; ok is false if ctx ended first.
func (t turn) take(ctx context.Context) (last time.Time, ok bool) {
	select {
	case last = <-t.free:
		return last, true
	case <-ctx.Done():
		return time.Time{}, false
	}
}

// release passes the turn on.
func (t turn) release(ended time.Time) { t.free <- ended }

// startWrite waits until the request may write: for the writer before it and for Limits.WritePause. ok is false if ctx
// ended first. If it is true, done must be called when the write is over.
func (t *Transport) startWrite(ctx context.Context) (done func(), ok bool) {
	last, ok := t.writer.take(ctx)
	if !ok {
		return nil, false
	}
	rest := time.Duration(0)
	if !last.IsZero() {
		rest = t.opt.Limits.WritePause - t.opt.Clock.Now().Sub(last)
	}
	if !t.pause(ctx, rest) {
		t.writer.release(last)
		return nil, false
	}
	return func() { t.writer.release(t.opt.Clock.Now()) }, true
}
