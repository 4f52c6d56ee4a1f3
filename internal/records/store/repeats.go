package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// repeatWindow is the time over which refusals of one kind are one row with a count.
const repeatWindow = time.Minute

// maxReasons bounds the reasons of one code for which one caller has rows of their own for one action within
// repeatWindow: a reason may hold words of the caller. Those beyond are of one kind for each code, so that nobody hides
// what is forbidden to them among many a mistake.
const maxReasons = 20

// repeats counts refusals that a caller over HTTP may repeat as often as they like. They are told by their door and
// outcome, so that no code that records a refusal there has to think of it. The first of a kind has its row at once, so
// that nothing is lost with the process that anybody would look for. Those that follow it within repeatWindow have one
// row together, which has the number of them, and the last one's request id and message.
type repeats struct {
	now func() time.Time

	mu    sync.Mutex
	kinds map[refusalKind]*repeated
	late  []record.Attempt // counts that could not be recorded when they were due; at most maxLate
}

// maxLate bounds the counts that wait for a database that cannot be written.
const maxLate = 1000

// refusalKind identifies refusals that are counted together: who, what, and why.
type refusalKind struct {
	door                   record.Door
	caller, action, reason string
	code                   fault.Code
}

type repeated struct {
	since time.Time
	last  record.Attempt
	more  int // after the first
}

// repeatable reports whether a row is counted. Agents over MCP and people at the command line are bounded otherwise,
// and a proposal that was judged has a row of its own, but not one of a caller who may not propose.
func repeatable(a record.Attempt) bool {
	if slices.Contains(record.ProposalActions(), a.Action) && a.Code != fault.Forbidden {
		return false
	}
	door := cmp.Or(a.Actor.Door, a.Door)
	return a.Outcome == record.OutcomeRefused &&
		(door == record.DoorWeb || door == record.DoorREST || door == record.DoorWebhook)
}

// refusalKindOf returns the kind of a refusal. Without a reason it is the one for all reasons of the code beyond
// maxReasons.
func (r *repeats) refusalKindOf(a record.Attempt) refusalKind {
	caller := a.Caller
	if !a.Actor.IsZero() {
		caller = encodeActor(a.Actor)
	}
	out := refusalKind{door: cmp.Or(a.Actor.Door, a.Door), caller: caller, action: a.Action, code: a.Code,
		reason: fmt.Sprintf("%q %q %q %d %q", a.Provider, a.Owner, a.Repo, a.PRNumber, a.Message)}
	if _, known := r.kinds[out]; known {
		return out
	}
	reasons := 0
	for k := range r.kinds {
		if k.door == out.door && k.caller == out.caller && k.action == out.action && k.code == out.code {
			reasons++
		}
	}
	if reasons >= maxReasons {
		out.reason = ""
	}
	return out
}

// addAttempt returns the rows that are due now: a itself unless it is counted, and those whose minute is over.
func (r *repeats) addAttempt(a record.Attempt) (due []record.Attempt, counted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	due = r.due(false)
	if !repeatable(a) {
		return append(due, a), false
	}
	key := r.refusalKindOf(a)
	if one, known := r.kinds[key]; known {
		one.more++
		one.last = a
		return due, true
	}
	r.kinds[key] = &repeated{since: r.now()}
	return append(due, a), false
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
		out = append(out, one.row(key, now))
	}
	return out
}

// row returns the row of those that were counted.
func (one *repeated) row(key refusalKind, now time.Time) record.Attempt {
	a, like := one.last, "like the one before"
	if key.reason == "" {
		like = "for further reasons"
	}
	if one.more > 1 {
		a.Message = fmt.Sprintf("%d more refusals %s, within a minute; the last: %s", one.more, like, a.Message)
	}
	a.Time = now
	return a
}

// forget has the next refusal of a's kind recorded: this one could not be. What was counted behind it is recorded
// later.
func (r *repeats) forget(a record.Attempt) {
	r.mu.Lock()
	key := r.refusalKindOf(a)
	one, known := r.kinds[key]
	delete(r.kinds, key)
	r.mu.Unlock()
	if known && one.more > 0 {
		r.keepLate([]record.Attempt{one.row(key, r.now())})
	}
}

// keepLate keeps counts that could not be recorded, for FlushRepeats.
func (r *repeats) keepLate(rows []record.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = append(r.late, rows[:min(len(rows), maxLate-len(r.late))]...)
}

// FlushRepeats records the counts of refusals whose minute is over, or all that there are. Those that cannot be
// recorded are kept for the next call.
func (l *Ledger) FlushRepeats(ctx context.Context, all bool) error {
	l.repeats.mu.Lock()
	due := append(l.repeats.late, l.repeats.due(all)...)
	l.repeats.late = nil
	l.repeats.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return l.db.appendAll(ctx, tx, due) })
	if err != nil {
		l.repeats.keepLate(due)
	}
	return err
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

// exactly is the period in which refusals are counted by their time. Older ones are counted by days.
const exactly = 25 * time.Hour

// recentRefusals keeps in memory when attempts were refused in the last 25 hours, by their codes. Attempts are only
// ever added, so that each question reads those that were recorded since the one before, by whatever process.
type recentRefusals struct {
	mu    sync.Mutex
	from  int64              // it knows all refusals since this time, in microseconds
	seq   int64              // of the last attempt that it has looked at
	times map[string][]int64 // by code, in order; nil before the first question
}

// since counts the refusals since a time by their codes, the most frequent first.
func (r *recentRefusals) since(ctx context.Context, d *database, since int64) (out []record.CodeCount, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := d.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return r.readNewRows(ctx, tx,
			since)
	}); err != nil {
		r.times = nil
		return nil, err
	}
	for code, times := range r.times {
		first, _ := slices.BinarySearch(times, since)
		if n := len(times) - first; n > 0 {
			out = append(out, record.CodeCount{Code: fault.Code(code), Count: n})
		}
	}
	slices.SortFunc(out, func(a, b record.CodeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	r.evictOlder(micros(d.now().Add(-exactly)))
	return out, nil
}

// readNewRows looks at what was recorded since it looked last; at all since the time, if it does not know them.
func (r *recentRefusals) readNewRows(ctx context.Context, tx *sql.Tx, since int64) error {
	var last int64
	if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(seq), 0) FROM attempts").Scan(&last); err != nil {
		return err
	}
	query, from := "SELECT time_us, code FROM attempts WHERE seq > $1 AND outcome = 'refused'", r.seq
	if r.times == nil || since < r.from || last < r.seq {
		r.times, r.from = map[string][]int64{}, since
		query, from = "SELECT time_us, code FROM attempts WHERE outcome = 'refused' AND time_us >= $1", since
	} else if last == r.seq {
		return nil
	}
	r.seq = last
	return queryRows(ctx, tx, func(rows *sql.Rows) error {
		var at int64
		var code string
		if err := rows.Scan(&at, (*textColumn)(&code)); err != nil || at < r.from {
			return err
		}
		times := r.times[code]
		place := len(times)
		if place > 0 && at < times[place-1] { // clocks differ
			place, _ = slices.BinarySearch(times, at)
		}
		r.times[code] = slices.Insert(times, place, at)
		return nil
	}, query, from)
}

// evictOlder gives up what is older than a time, once that is half of it.
func (r *recentRefusals) evictOlder(before int64) {
	for code, times := range r.times {
		if old, _ := slices.BinarySearch(times, before); old > len(times)/2 {
			r.times[code], r.from = slices.Clone(times[old:]), max(r.from, before)
		}
	}
}

// Bounds of what is kept of refused attempts: an agent that tries again and again must not fill the disk.
const (
	maxWantedKept = 1000     // attempts, the newest
	maxWanted     = 16 << 10 // bytes of one
)

// keepWanted keeps what a refused attempt wanted, and lets the oldest go.
func keepWanted(ctx context.Context, tx *sql.Tx, row auditRow) error {
	if row.Wanted == nil {
		return nil
	}
	change, err := json.Marshal(row.Wanted)
	if err != nil || len(change) > maxWanted {
		return err
	}
	const insert = `INSERT INTO refused_changes (request_id, created_us, change) VALUES ($1, $2, $3) ON CONFLICT (request_id) DO NOTHING`
	if _, err := tx.ExecContext(ctx, insert, textColumn(bound(row.RequestID, maxWord)), micros(row.Time),
		textColumn(change)); err != nil {
		return err
	}
	const trim = `DELETE FROM refused_changes WHERE request_id IN
		(SELECT request_id FROM refused_changes ORDER BY created_us DESC, request_id DESC LIMIT 100 OFFSET $1)`
	_, err = tx.ExecContext(ctx, trim, maxWantedKept)
	return err
}

// Wanted returns what is kept of the change that a refused attempt asked for; nil for nothing.
func (h *History) Wanted(ctx context.Context, requestID string) (*record.RefusedChange, error) {
	var change textColumn
	found, err := h.db.first(ctx, []any{&change}, "SELECT change FROM refused_changes WHERE request_id = $1",
		textColumn(bound(requestID, maxWord)))
	if err != nil || !found {
		return nil, err
	}
	out := &record.RefusedChange{}
	if err := json.Unmarshal([]byte(change), out); err != nil {
		return nil, fault.Wrap(err, fault.Internal,
			"what a refused attempt wanted is damaged in the record; restore a backup")
	}
	return out, nil
}
