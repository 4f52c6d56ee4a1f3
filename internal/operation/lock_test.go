package operation

import (
	"context"
	"testing"
)

// TestAFolderThatNobodyHoldsIsLockedHoweverLateTheCallIs has calls come when they have no time left to wait. Each of
// them could be refused by chance, so there are many.
func TestAFolderThatNobodyHoldsIsLockedHoweverLateTheCallIs(t *testing.T) {
	l := NewLocks(t.TempDir())
	l.wait = 0
	for range 20 {
		release, refused := l.takeAll(context.Background(), []string{t.TempDir()}, func(string) {})
		if refused != nil {
			t.Fatal(refused.General)
		}
		release()
	}
}
