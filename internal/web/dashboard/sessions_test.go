package dashboard

import (
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestComingRunsOfTheNextDay(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for about, c := range map[string]struct {
		next        time.Time
		every       time.Duration
		runs, more  int
		first, last int
	}{
		"nothing is scheduled":  {},
		"every hour":            {now.Add(time.Hour), time.Hour, 6, 18, 41, 250},
		"twice":                 {now.Add(6 * time.Hour), 12 * time.Hour, 2, 0, 250, 750},
		"overdue":               {now.Add(-time.Hour), 24 * time.Hour, 2, 0, 0, 1000},
		"not before tomorrow":   {now.Add(25 * time.Hour), time.Hour, 0, 0, 0, 0},
		"when is not known yet": {time.Time{}, time.Hour, 0, 0, 0, 0},
	} {
		after := func(due time.Time) time.Time { return due.Add(c.every) }
		if c.every == 0 {
			after = nil
		}
		runs, more := comingRuns(now, c.next, after, 6)
		if len(runs) != c.runs || more != c.more {
			t.Errorf("%s: %d runs and %d more", about, len(runs), more)
			continue
		}
		if c.runs > 0 && (runs[0].X != c.first || runs[c.runs-1].X != c.last) {
			t.Errorf("%s: from %d to %d", about, runs[0].X, runs[c.runs-1].X)
		}
	}
}

func TestABarOfOneBesideThousandsIsSeen(t *testing.T) {
	t.Parallel()
	report := record.OutcomeReport{Total: record.OutcomeSum{Merged: 5000, Revised: 1000, Open: 1}}
	want := map[string]int{"Merged as proposed": 100, "Merged after a revision": 25, "Still open": 1}
	for _, b := range outcomeBars(report) {
		if b.Width != want[b.Label] {
			t.Errorf("%s has the width %d, want %d", b.Label, b.Width, want[b.Label])
		}
	}
}
