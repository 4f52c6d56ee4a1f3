//go:build !postgres

package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestTheDiskIsTouchedAtTheFirstCallOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := newUnopened(t, dir)
	wantEqual(t, s.Path(), filepath.Join(dir, databaseName))
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made before the first call")
	}
	wantEqual(t, s.Ledger.Record(context.Background(), attempt("1"), nil), nil)
	if _, err := os.Stat(s.Path()); err != nil {
		t.Fatal(err)
	}
}

func TestAStoreThatIsClosedUnusedMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := New(dir, Options{})
	wantEqual(t, s.Close(), nil)
	wantCode(t, s.Ping(context.Background()), fault.Internal)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made")
	}
}

func TestAfterAFailureToOpenTheNextCallTriesAgain(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "state", "in the way")
	s := newUnopened(t, file)
	for range 2 {
		wantCode(t, s.Ping(context.Background()), fault.Misconfigured)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, s.Ping(context.Background()), nil)
}
