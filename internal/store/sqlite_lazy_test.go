//go:build !postgres

package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
)

func TestLazyTouchesTheDiskAtTheFirstCallOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := newLazy(t, dir)
	wantEqual(t, l.Path(), filepath.Join(dir, databaseName))
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made before the first call")
	}
	wantEqual(t, l.Record(context.Background(), attempt("1"), nil), nil)
	if _, err := os.Stat(l.Path()); err != nil {
		t.Fatal(err)
	}
}

func TestLazyClosedUnusedMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := NewLazy(dir, Options{})
	wantEqual(t, l.Close(), nil)
	wantCode(t, l.Ping(context.Background()), fault.Internal)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made")
	}
}

func TestLazyTriesAgainAfterAFailure(t *testing.T) {
	file := write(t, t.TempDir(), "state", "in the way")
	l := newLazy(t, file)
	for range 2 {
		wantCode(t, l.Ping(context.Background()), fault.Misconfigured)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, l.Ping(context.Background()), nil)
}
