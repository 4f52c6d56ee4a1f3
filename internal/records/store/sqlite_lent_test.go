//go:build !postgres

package store

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// connectionsOf returns how many connections a store has: those of the pool that writes, and those that only read.
func connectionsOf(s *Store) (writing, reading int) {
	return writerOf(s).Stats().OpenConnections, readerOf(s).Stats().OpenConnections
}

func wantConnections(t *testing.T, s *Store, writing, reading int) {
	t.Helper()
	if w, r := connectionsOf(s); w != writing || r != reading {
		t.Fatalf("there are %d connections that write and %d that read, want %d and %d", w, r, writing, reading)
	}
}

func writeNothing(t *testing.T, s *Store) {
	t.Helper()
	must.Do(t, s.db.writeTx(context.Background(), func(context.Context, *sql.Tx) error { return nil }))
}

func TestWhatReadsAndWritesInTurnHasOneConnection(t *testing.T) {
	s := openNew(t)
	for range 3 {
		wantEqual(t, s.Ping(t.Context()), nil)
		wantEqual(t, s.Check(t.Context()), nil)
		recordAttempts(t, s, attempt("a"))
	}
	wantConnections(t, s, 1, 0)
	for range maxLent {
		wantEqual(t, s.Ping(t.Context()), nil)
	}
	wantConnections(t, s, 1, 1)
}

func TestALentConnectionReadsOnlyAndKeepsNobodyFromWriting(t *testing.T) {
	s := openNew(t)
	err := s.db.readTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		wantConnections(t, s, 1, 0)
		if _, err := tx.ExecContext(ctx, "DELETE FROM notices"); err == nil || !strings.Contains(err.Error(), "readonly") {
			t.Errorf("a lent connection has written: %v", err)
		}
		recordAttempts(t, s, attempt("a")) // with a context of its own, as another call
		var rows int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM audit").Scan(&rows)
		if rows != 0 {
			t.Errorf("the view of a read has changed: %d rows", rows)
		}
		return err
	})
	wantEqual(t, err, nil)
	writeNothing(t, s)
	wantConnections(t, s, 1, 0)
	wantEqual(t, s.Ping(t.Context()), nil) // those who read beside others that write have connections of their own
	wantConnections(t, s, 1, 1)
}

func TestWhatReadsFlushesAsWhatWrites(t *testing.T) {
	s := open(t, emptyPlace(t), Options{})
	for _, db := range []*sql.DB{writerOf(s), readerOf(s)} {
		var synchronous int
		if err := db.QueryRow("PRAGMA synchronous").Scan(&synchronous); err != nil || synchronous != 2 {
			t.Errorf("synchronous is %d (%v), want 2, FULL: the last connection that closes writes the file", synchronous, err)
		}
	}
}
