//go:build !postgres

package store

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestWhatIsFreeIsTakenHoweverLateTheCallIs has calls come when they have no time left to wait. Each of them could be
// refused by chance, so there are many.
func TestWhatIsFreeIsTakenHoweverLateTheCallIs(t *testing.T) {
	s := openNew(t)
	s.db.turns.patience, s.db.readers.patience = 0, 0
	for range 20 {
		writeNothing(t, s)
		must.Do(t, s.Ping(context.Background()))
	}
}
