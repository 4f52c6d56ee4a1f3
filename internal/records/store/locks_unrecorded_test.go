package store

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

// A call whose context has ended fails as one does that finds the disk full: nothing is recorded.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAReservationWhoseEndWentUnrecordedIsAbandoned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, giveUp := range map[string]func(*Store) error{
		"when it could not be marked as unsettled": func(s *Store) error {
			return s.Ledger.Advance(ended(), "lost", record.Progress{State: record.StateUnsettled})
		},
		"when its failure could not be recorded": func(s *Store) error {
			return s.Ledger.Finish(ended(), "lost", record.Progress{State: record.StateFailed}, attempt("lost"))
		},
		"when its pull request could not be recorded": func(s *Store) error {
			return s.Ledger.Finish(ended(), "lost", record.Progress{State: record.StateOpened, PRNumber: 1}, attempt("lost"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := newPlace(t)
			s, other := open(t, place, Options{}), open(t, place, Options{})
			reserve(t, s, proposal("lost", "checks/lost.md"), 0)
			reserve(t, s, proposal("busy", "checks/busy.md"), 0)
			if giveUp(s) == nil {
				t.Fatal("the call did not fail")
			}
			waitUntilEnded(t, other, s.Ledger.held.name("lost"))
			want := map[string]bool{"lost": true, "busy": false} // it still works on one
			wantEqual(t, abandoned(t, other), want)
			wantEqual(t, abandoned(t, s), want) // this process may settle it, too

			wantEqual(t, s.Ledger.Finish(ctx, "busy", record.Progress{State: record.StateFailed}, attempt("busy")), nil)
			reserve(t, s, proposal("next", "checks/next.md"), 0)
			wantEqual(t, abandoned(t, other), map[string]bool{"lost": true, "next": false})
		})
	}
}

func TestWhoGaveUpIsFencedOnceAnotherHasAdopted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	place := newPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("lost", "checks/lost.md"), 0)
	if s.Ledger.Advance(ended(), "lost", record.Progress{State: record.StateUnsettled}) == nil {
		t.Fatal("the call did not fail")
	}
	left, err := other.History.Unfinished(ctx)
	wantEqual(t, err, nil)
	ok, err := other.Ledger.Adopt(ctx, left[0])
	wantEqual(t, []any{ok, err}, []any{true, nil})
	wantCode(t, s.Ledger.Advance(ctx, "lost", record.Progress{State: record.StateUnsettled}), "conflict")
}
