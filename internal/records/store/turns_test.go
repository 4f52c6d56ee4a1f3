package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// wantLocked fails the test unless the error says who keeps the call from writing.
func wantLocked(t testing.TB, err error, who string) {
	t.Helper()
	wantCode(t, err, fault.Timeout)
	e := fault.From(err)
	if !strings.Contains(e.Message, "the records are locked by "+who) || !strings.Contains(e.Message, " since ") ||
		e.RetryAfter <= 0 || !e.Retryable() {
		t.Errorf("got %v, after %s (cause %v)", err, e.RetryAfter, e.Cause)
	}
}

// Calls that write wait for one another and for other processes, and none of them waits longer than one of them may.
func TestCallsThatWaitForTheRecordsDoNotWaitForOneAnotherAsWell(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Second
	s := openWith(t, Options{BusyTimeout: patience})
	release := holdWriteLock(t, s)
	began := time.Now()
	var all sync.WaitGroup
	took := make([]time.Duration, 8)
	for i := range took {
		all.Go(func() {
			_, err := s.Ledger.Reserve(context.Background(), proposal(fmt.Sprint(i), fmt.Sprintf("checks/%d.md", i)),
				record.Claim{})
			wantLocked(t, err, "")
			// the result cannot be recorded either
			wantLocked(t, s.Ledger.Record(context.Background(), attempt(fmt.Sprint(i)), nil), "")
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	// one after the other they would take 16 s, and 16 more to record it; the machine may be busy
	const most = 8 * patience
	for i, d := range took {
		if d >= most {
			t.Errorf("call %d took %s", i, d)
		}
	}
	release()
	recordAttempts(t, s, attempt("after"))
	if s.db.turns.stuck.Load() {
		t.Error("nobody waits as long as one may any more")
	}
}

func TestWhoHoldsTheRecordsIsNamed(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	cmd := child(t, "write-for-long", place, "0.9.7")
	in, err := cmd.StdinPipe()
	wantEqual(t, err, nil)
	out, err := cmd.StdoutPipe()
	wantEqual(t, err, nil)
	wantEqual(t, cmd.Start(), nil)
	line := make([]byte, len("there\n"))
	if _, err := out.Read(line); err != nil {
		t.Fatal(err)
	}
	s := open(t, place, Options{BusyTimeout: 10 * time.Millisecond})
	err = s.Ledger.Record(context.Background(), attempt("1"), nil)
	wantLocked(t, err, "")
	for _, part := range []string{"claudeops 0.9.7 serve", fmt.Sprint("process ", cmd.Process.Pid),
		" UTC; this call waited"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "or before") {
		t.Errorf("it is known since when: %v", err)
	}
	wantEqual(t, in.Close(), nil)
	wantEqual(t, cmd.Wait(), nil)
	recordAttempts(t, s, attempt("1"))
}

// usedBy starts a process of a version that uses the place.
func usedBy(t testing.TB, place, version string) (pid int, end func()) {
	t.Helper()
	cmd := child(t, "use", place, version)
	in, err := cmd.StdinPipe()
	wantEqual(t, err, nil)
	out, err := cmd.StdoutPipe()
	wantEqual(t, err, nil)
	wantEqual(t, cmd.Start(), nil)
	line := make([]byte, len("there\n"))
	if _, err := out.Read(line); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() {
		t.Helper()
		wantEqual(t, in.Close(), nil)
		wantEqual(t, cmd.Wait(), nil)
	}
}

// A callback about new rows of the audit may write, as the export of their heads does.
func TestWhoHearsOfNewRowsMayWrite(t *testing.T) {
	t.Parallel()
	var s *Store
	heard := 0
	s = openWith(t, Options{Appended: func(ctx context.Context) {
		heard++
		wantEqual(t, s.db.exec(ctx, "DELETE FROM rounds"), nil)
	}})
	recordAttempts(t, s, attempt("1"))
	wantEqual(t, heard, 1)
}
