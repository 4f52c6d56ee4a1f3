package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// turns lets one call of this process write at a time, and bounds how long one waits until it can: for the calls before
// it and for other processes, all together.
type turns struct {
	one      chan struct{} // full while a call writes or waits for others
	patience time.Duration
	stuck    atomic.Bool // a call has waited in vain, and none could write since
}

// stuckPatience is how long a call waits after another one has waited in vain: otherwise a call that writes several
// times, as a proposal does, would wait the full time again and again.
const stuckPatience = time.Second

// begin begins a transaction that writes; over is to be called when it has ended. A call that could not begin is
// timeout, with who holds the records; nothing was written then.
func (t *turns) begin(ctx context.Context, c *connection) (tx *sql.Tx, over func(), err error) {
	began, patience := time.Now(), t.patience
	if t.stuck.Load() {
		patience = min(patience, stuckPatience)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case t.one <- struct{}{}:
	case <-waiting.Done():
		return nil, nil, t.inVain(ctx, c, began, waiting.Err())
	}
	tx, err = c.beginWrite(ctx, waiting)
	if err != nil {
		<-t.one
		var known *fault.Error
		if !errors.As(err, &known) && (waiting.Err() != nil || causeOf(err) == causeBusy) {
			err = t.inVain(ctx, c, began, err)
		}
		return nil, nil, c.asFault(ctx, err)
	}
	t.stuck.Store(false)
	written := c.writing()
	return tx, sync.OnceFunc(func() { written(); <-t.one }), nil
}

// inVain returns the failure of a call that could not begin to write.
func (t *turns) inVain(ctx context.Context, c *connection, began time.Time, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.From(ctx.Err())
	}
	if ctx.Err() == nil {
		t.stuck.Store(true)
	}
	const lookFor = 2 * time.Second
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	who, since, err := c.holder(looking)
	if err != nil {
		return again(cause, "%s; this call waited %s and wrote nothing", fault.From(err).Message, waited(began))
	}
	from := "since " + began.UTC().Format(time.TimeOnly) + " UTC or before"
	if !since.IsZero() {
		from = "since " + since.UTC().Format(time.TimeOnly) + " UTC"
	}
	e := fault.Wrap(cause, fault.Timeout,
		"the records are locked by %s, %s; this call waited %s and wrote nothing. Try again when that has ended, or end it",
		who, from, waited(began))
	e.RetryAfter = t.patience
	return e
}

// readers lets as many calls of this process read at a time as there are connections for that.
type readers struct {
	free     chan struct{} // has a token for each call that reads
	patience time.Duration
}

// begin waits for a connection of the database at path; over is to be called when the call has read.
func (r *readers) begin(ctx context.Context, path string) (over func(), err error) {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	select {
	case r.free <- struct{}{}:
		return func() { <-r.free }, nil
	case <-waiting.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fault.From(ctx.Err())
	}
	return nil, again(waiting.Err(), "all connections to the database %s that read were in use for %s; try again",
		path, waited(began))
}

func waited(began time.Time) string {
	d := time.Since(began)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
}
