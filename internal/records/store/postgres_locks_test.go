//go:build postgres

package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestAStoreThatLostItsSessionIsTakenForGoneAndFencedOff(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), newPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("before", "checks/a.md"), 0)
	name := nameIn(t, s, "before")
	session := s.db.conn.locks.(*sessionLocks).conn.PgConn().PID()
	mustExec(t, raw(t, s), fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", session))
	waitUntilEnded(t, other, name)

	wantEqual(t, abandoned(t, other), map[string]bool{"before": true})
	wantEqual(t, abandoned(t, s), map[string]bool{"before": false}) // it knows better
	finish(t, other, "before", record.Progress{State: record.StateFailed})
	wantCode(t, s.Ledger.Finish(ctx, "before", opened(1), attempt("late")), fault.Conflict)

	reserve(t, s, proposal("after", "checks/b.md"), 0)
	wantEqual(t, abandoned(t, other), map[string]bool{"after": false})
	if again := nameIn(t, s, "after"); again == name {
		t.Fatalf("the name %s was used again", name)
	}
}

func TestACancelledReservationEndsNoOtherLock(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Ledger.Reserve(ctx, proposal("2", "checks/b.md"), record.Claim{})
	wantCode(t, err, fault.Timeout)
	wantEqual(t, abandoned(t, other), map[string]bool{"1": false})
	session := s.db.conn.locks.(*sessionLocks).conn
	reserve(t, s, proposal("3", "checks/c.md"), 0)
	wantEqual(t, s.db.conn.locks.(*sessionLocks).conn == session, true)
	wantEqual(t, abandoned(t, other), map[string]bool{"1": false, "3": false})
}

func TestASessionIsNotEndedForBeingIdle(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s := open(t, withParameter(t, place, "idle_session_timeout", "1h"), Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	var timeout string
	wantEqual(t, s.db.conn.locks.(*sessionLocks).conn.QueryRow(t.Context(), "SHOW idle_session_timeout").Scan(&timeout),
		nil)
	wantEqual(t, timeout, "0")
}

func TestANameThatIsTakenIsAFault(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	same := Options{NewID: func() string { return t.Name() }}
	s, other := open(t, place, same), open(t, place, same)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	_, err := other.Ledger.Reserve(t.Context(), proposal("2", "checks/b.md"), record.Claim{})
	wantCode(t, err, fault.Internal)
}
