package storetest

import (
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// lend runs do with a store, and gives it back.
func lend(t *testing.T, r *Reused, image Image, do func(*testing.T, *Lent)) {
	t.Helper()
	t.Run("", func(t *testing.T) { do(t, r.Open(t, image, time.Now)) })
}

func add(t *testing.T, l *Lent, action string) {
	t.Helper()
	must.Do(t, l.Ledger.Record(t.Context(), record.Attempt{Action: action, Outcome: record.OutcomeDone}, nil))
}

func wantRows(t *testing.T, l *Lent, want int) {
	t.Helper()
	report, err := l.Audit.Verify(t.Context(), "")
	if err != nil || !report.OK() || report.Rows != int64(want) {
		t.Errorf("%+v, %v, want %d rows", report, err, want)
	}
	attempts, err := l.Audit.Page(t.Context(), record.AuditQuery{Limit: record.MaxAuditLimit})
	if err != nil || len(attempts) != want {
		t.Errorf("%d attempts, %v, want %d", len(attempts), err, want)
	}
}

func TestWhatOneTestRecordsTheNextOneDoesNotSee(t *testing.T) {
	var r Reused
	var first *Lent
	var one Image
	lend(t, &r, nil, func(t *testing.T, l *Lent) {
		first = l
		add(t, l, "test.one")
		one = must.Get(l.Image(t.Context()))(t)
		for range 300 { // more pages than an empty one has
			add(t, l, "test.more")
		}
	})
	for _, tt := range []struct {
		image Image
		rows  int
	}{{nil, 0}, {one, 1}, {nil, 0}, {one, 1}} {
		lend(t, &r, tt.image, func(t *testing.T, l *Lent) {
			if l != first {
				t.Error("it is another store")
			}
			wantRows(t, l, tt.rows)
			add(t, l, "test.two")
			wantRows(t, l, tt.rows+1)
		})
	}
	must.Do(t, r.Close())
}

func TestAStoreIsLentToOneTestAtATimeAndNotAfterOtherProcesses(t *testing.T) {
	var r Reused
	var spent *Lent
	lend(t, &r, nil, func(t *testing.T, l *Lent) {
		spent = l
		if r.Open(t, nil, time.Now) == l {
			t.Error("it is lent twice")
		}
		l.Spend()
	})
	lend(t, &r, nil, func(t *testing.T, l *Lent) {
		if l == spent {
			t.Error("other processes used it")
		}
	})
	must.Do(t, r.Close())
}
