package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

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
	if err := d.read(ctx, func(ctx context.Context, tx *sql.Tx) error { return r.read(ctx, tx, since) }); err != nil {
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
	r.forget(micros(d.now().Add(-exactly)))
	return out, nil
}

// read looks at what was recorded since it looked last; at all since the time, if it does not know them.
func (r *recentRefusals) read(ctx context.Context, tx *sql.Tx, since int64) error {
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
		if err := rows.Scan(&at, (*text)(&code)); err != nil || at < r.from {
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

// forget gives up what is older than a time, once that is half of it.
func (r *recentRefusals) forget(before int64) {
	for code, times := range r.times {
		if old, _ := slices.BinarySearch(times, before); old > len(times)/2 {
			r.times[code], r.from = slices.Clone(times[old:]), max(r.from, before)
		}
	}
}
