package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// repeatWindow is the time over which refusals of one kind are one row with a count.
const repeatWindow = time.Minute

// maxReasons bounds the reasons for which one caller has rows of their own for one action within repeatWindow: a reason
// may hold words of the caller. Those beyond are of one kind.
const maxReasons = 20

// repeats counts refusals that somebody repeats at will (record.Attempt.Repeats). The first of a kind has its row at
// once, so that nothing is lost with the process that anybody would look for. Those that follow it within repeatWindow
// have one row together, which has the number of them, and the last one's request id and message.
type repeats struct {
	now func() time.Time

	mu    sync.Mutex
	kinds map[kind]*repeated
}

// kind identifies refusals that are counted together: who, what, and why.
type kind struct {
	door                   record.Door
	caller, action, reason string
}

type repeated struct {
	since time.Time
	last  record.Attempt
	more  int // after the first
}

// kindOf returns the kind of a refusal. Without a reason it is the one for all reasons beyond maxReasons.
func (r *repeats) kindOf(a record.Attempt) kind {
	caller := a.Caller
	if !a.Actor.IsZero() {
		caller = encodeActor(a.Actor)
	}
	out := kind{a.Door, caller, a.Action, fmt.Sprint(a.Code, a.Provider, a.Owner, a.Repo, a.PRNumber, a.Message)}
	if _, known := r.kinds[out]; known {
		return out
	}
	reasons := 0
	for k := range r.kinds {
		if k.door == out.door && k.caller == out.caller && k.action == out.action {
			reasons++
		}
	}
	if reasons >= maxReasons {
		out.reason = ""
	}
	return out
}

// add returns the rows that are due now: a itself unless it is counted, and those whose minute is over.
func (r *repeats) add(a record.Attempt) []record.Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.due(false)
	if !a.Repeats || a.Outcome != record.OutcomeRefused {
		return append(due, a)
	}
	key := r.kindOf(a)
	if one, known := r.kinds[key]; known {
		one.more++
		one.last = a
		return due
	}
	r.kinds[key] = &repeated{since: r.now()}
	return append(due, a)
}

// due takes the counts whose minute is over, or all of them.
func (r *repeats) due(all bool) (out []record.Attempt) {
	now := r.now()
	for key, one := range r.kinds {
		if over := now.Sub(one.since) >= repeatWindow || now.Before(one.since); !over && !all {
			continue
		}
		delete(r.kinds, key)
		if one.more == 0 {
			continue
		}
		a := one.last
		if one.more > 1 {
			a.Message = fmt.Sprintf("%d more refusals like the one before, within a minute; the last: %s", one.more, a.Message)
		}
		a.Time = now
		out = append(out, a)
	}
	return out
}

// forget has the next refusal of a's kind recorded: this one could not be.
func (r *repeats) forget(a record.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, r.kindOf(a))
}

// FlushRepeats records the counts of refusals whose minute is over, or all that there are.
func (l *Ledger) FlushRepeats(ctx context.Context, all bool) error {
	l.repeats.mu.Lock()
	due := l.repeats.due(all)
	l.repeats.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	return l.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return l.db.appendAll(ctx, tx, due) })
}

// KeepRepeats records counts as their minutes end, at each tick until ctx ends, and then what is left.
func (l *Ledger) KeepRepeats(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), repeatWindow)
			defer cancel()
			_ = l.FlushRepeats(last, true) // each refusal is in the log of the server
			return
		case <-tick:
			_ = l.FlushRepeats(ctx, false) // as above
		}
	}
}
