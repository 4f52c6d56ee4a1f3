package store

import (
	"context"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// newUnopened is a store of an empty place that nothing has used yet.
func newUnopened(t testing.TB, place string) *Store {
	t.Helper()
	s := newAt(place, Options{Now: noon})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestManyFirstCallsOpenTheDatabaseOnce(t *testing.T) {
	t.Parallel()
	s := newUnopened(t, newPlace(t))
	connections := make([]*connection, 16)
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			c, err := s.db.open(context.Background())
			if err != nil {
				t.Error(err)
			}
			connections[i] = c
		})
	}
	wg.Wait()
	for _, c := range connections {
		if c != connections[0] {
			t.Fatal("opened more than once")
		}
	}
}

func TestCloseIsFinalAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	s := newUnopened(t, newPlace(t))
	wantEqual(t, s.Ping(context.Background()), nil)
	for range 2 {
		wantEqual(t, s.Close(), nil)
	}
	wantCode(t, s.Ping(context.Background()), fault.Internal)
	_, err := s.Ledger.Adopt(context.Background(), proposal("1", "checks/a.md"))
	wantCode(t, err, fault.Internal)
}

func TestACallWaitsForTheOpeningNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	s := newUnopened(t, newPlace(t))
	s.db.sem <- struct{}{} // somebody is opening
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantCode(t, s.Ping(ctx), fault.Timeout)
	<-s.db.sem
}
