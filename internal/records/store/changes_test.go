package store

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// The version changes with every record, of any process, and not otherwise.
func TestTheVersionChangesWithWhatIsRecorded(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
	_, known := s.Changes().Version(t.Context())
	if s.db.opts.DatabaseURL != "" {
		if known {
			t.Error("PostgreSQL does not tell")
		}
		return
	}
	version := func() string {
		t.Helper()
		v, known := s.Changes().Version(t.Context())
		if !known {
			t.Fatal("the version is not known")
		}
		return v
	}
	seen := map[string]bool{version(): true}
	changed := func(by string) {
		t.Helper()
		v := version()
		if seen[v] {
			t.Errorf("what %s has recorded is not seen: %q", by, v)
		}
		if again := version(); again != v {
			t.Errorf("%q became %q, and nothing was recorded", v, again)
		}
		seen[v] = true
	}
	wantEqual(t, s.Ledger.Record(t.Context(), attempt("one"), nil), nil)
	changed("this store")
	wantEqual(t, other.Ledger.Record(t.Context(), attempt("two"), nil), nil)
	changed("another")
	key := openedPull(t, other, 7)
	changed("another")
	wantEqual(t, s.Pulls.TriedPull(t.Context(), key), nil)
	changed("this store")
	if _, err := s.History.Proposal(t.Context(), "p7"); err != nil {
		t.Fatal(err)
	}
	if v := version(); !seen[v] {
		t.Error("reading is no change")
	}
	wantEqual(t, s.Close(), nil)
	if _, known := s.Changes().Version(t.Context()); known {
		t.Error("a closed store knows no version")
	}
}

// What is read within a view belongs together, whatever others record meanwhile.
func TestAViewShowsTheRecordsAsTheyWere(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s, other := open(t, place, Options{Now: noon, Readers: 2}), open(t, place, Options{Now: noon})
	recordAttempts(t, s, attempt("before"))
	refusals := func(ctx context.Context) (n int) {
		counts, err := s.History.RefusalsByCode(ctx, noon().Add(-time.Hour))
		wantEqual(t, err, nil)
		rows, err := s.History.Attempts(ctx, record.AttemptQuery{})
		wantEqual(t, err, nil)
		for _, c := range counts {
			n += c.Count
		}
		wantEqual(t, n, len(rows))
		return n
	}
	err := s.Changes().View(t.Context(), func(ctx context.Context) error {
		wantEqual(t, refusals(ctx), 1)
		recordAttempts(t, other, attempt("meanwhile"))
		wantEqual(t, refusals(t.Context()), 2)
		wantEqual(t, refusals(ctx), 1)
		return fault.New(fault.Conflict, "as it is")
	})
	wantCode(t, err, fault.Conflict)
	wantEqual(t, refusals(t.Context()), 2)
}

// open allows one connection for reading. What a view asks beside its tables, as which locks are held, needs no second
// one, or pages side by side would wait for each other.
func TestAViewTakesNoSecondConnection(t *testing.T) {
	ctx, place := t.Context(), newPlace(t)
	s := open(t, place, Options{BusyTimeout: time.Second})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.AgentSessions.BeginSession(ctx, runningSession("s1")), nil)
	wantEqual(t, s.Connections().OpenConnection(ctx, record.Connection{ID: "c1", Since: noon()}), nil)
	wantEqual(t, s.db.view(ctx, func(ctx context.Context) error {
		wantEqual(t, abandonedBy(ctx, t, s), map[string]bool{"1": false})
		open, err := s.Connections().Connections(ctx)
		wantEqual(t, err, nil)
		wantEqual(t, len(open), 1)
		return s.ScriptRuns().SettleScriptRuns(ctx, nil)
	}), nil)
}

func TestACallThatHoldsAConnectionMayNotWrite(t *testing.T) {
	s := openNew(t)
	record := func(ctx context.Context) error { return s.Ledger.Record(ctx, attempt("1"), nil) }
	wantCode(t, s.db.view(t.Context(), record), fault.Internal)
	wantCode(t, s.db.write(t.Context(), func(ctx context.Context, _ *sql.Tx) error { return record(ctx) }), fault.Internal)
	wantEqual(
		t,
		s.db.view(t.Context(), func(ctx context.Context) error { return record(context.WithoutCancel(t.Context())) }),
		nil,
	) // one that has nothing to do with the view
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 1)
}

// A call that finds all connections in use gives up, and does not wait for as long as that lasts.
func TestAReadWaitsForAConnectionForAWhileOnly(t *testing.T) {
	s := open(t, newPlace(t), Options{BusyTimeout: time.Millisecond})
	wantEqual(t, s.db.view(t.Context(), func(context.Context) error {
		err := fault.From(s.Ping(t.Context()))
		if err.Code != fault.Timeout || !strings.Contains(err.Message, s.Path()) || !err.Retryable() {
			t.Errorf("got %v", err)
		}
		return nil
	}), nil)
	wantEqual(t, s.Ping(t.Context()), nil)
}
