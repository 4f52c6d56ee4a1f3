package store

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Whoever records, the version is another one afterwards, and stays the same otherwise.
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
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
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
