package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Rows from memory equal those that are read, and the values that change beside them are read each time.
func TestAttemptsFromMemoryAreThoseThatAreRead(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s := open(t, place, Options{})
	other := open(t, place, Options{}) // as another process would
	openedPull(t, s, 7)
	for i := range 5 {
		a := attempt(fmt.Sprintf("a%d", i))
		a.Outcome, a.Session = record.OutcomeRefused, "session-1"
		recordAttempts(t, s, a)
	}
	read := func(s *Store) []record.RecordedAttempt {
		t.Helper()
		rows, err := s.History.Attempts(t.Context(), record.AttemptQuery{Limit: 10})
		wantEqual(t, err, nil)
		return rows
	}
	first := read(s)
	wantEqual(t, len(first), 6)
	wantEqual(t, read(s), first)
	wantEqual(t, read(other), first)
	// The same rows, and the proposal of the oldest has another state.
	mustExec(t, raw(t, other), "UPDATE proposals SET state = 'unsettled' WHERE id = 'p7'")
	rows := read(s)
	wantEqual(t, rows[5].State, record.StateUnsettled)
	rows[5].State = first[5].State
	wantEqual(t, rows, first)
}

func TestMemoryOfRowsIsBounded(t *testing.T) {
	t.Parallel()
	var m rowMemory
	row := func(i, size int) auditRow {
		return newAuditRow(int64(i), genesisHash, record.Attempt{RequestID: fmt.Sprint(i),
			Message: strings.Repeat("x", size)})
	}
	for i := range 3 * maxRowsInMemory {
		m.keep(row(i, maxMessage))
		if len(m.rows) > maxRowsInMemory || m.bytes > maxRowBytesInMemory {
			t.Fatalf("%d rows of %d bytes", len(m.rows), m.bytes)
		}
		if _, found := m.find(row(i, maxMessage).Hash); !found {
			t.Fatal("the newest row is not kept")
		}
	}
}

// Of two processes that export to one sink, the slower one notes last what it sent first.
func TestWhatASinkHasTakenIsNeverTakenBack(t *testing.T) {
	ctx, s := t.Context(), openNew(t)
	recordAttempts(t, s, attempt("1"), attempt("2"))
	heads, err := s.Audit.HeadsAfter(ctx, 0, 2)
	wantEqual(t, err, nil)
	for _, h := range []record.Head{heads[1], heads[0]} {
		wantEqual(t, s.Audit.Exported(ctx, "https", h), nil)
	}
	export, err := s.Audit.Export(ctx, "https")
	wantEqual(t, []any{export.Last.Seq, export.Last.Hash, err}, []any{int64(2), heads[1].Hash, nil})
}
