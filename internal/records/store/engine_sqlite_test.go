//go:build !postgres

package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The tests of this package run on the engine that this file or engine_postgres_test.go names; the build tag chooses.

const blobType = "BLOB"

// enginePrepared says why the engine cannot be tested here, if so.
func enginePrepared() error { return nil }

// newPlace is where a store can be made: here a folder that does not exist yet.
func newPlace(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state")
}

// emptyDatabase is the file of a database without records, made once: under the race detector that takes longer than
// most tests.
var emptyDatabase struct {
	once sync.Once
	data []byte
	err  error
}

// emptyPlace is where a store has been made already, which is empty.
func emptyPlace(t testing.TB) string {
	t.Helper()
	emptyDatabase.once.Do(func() {
		var s *Store
		if s, emptyDatabase.err = Open(t.Context(), newPlace(t), Options{}); emptyDatabase.err == nil {
			emptyDatabase.err = s.Close()
		}
		if emptyDatabase.err == nil {
			emptyDatabase.data, emptyDatabase.err = os.ReadFile(s.Path())
		}
	})
	must.Do(t, emptyDatabase.err)
	dir := newPlace(t)
	must.Do(t, os.Mkdir(dir, dirMode))
	must.Do(t, os.WriteFile(filepath.Join(dir, databaseName), emptyDatabase.data, fileMode))
	return dir
}

func openPlace(ctx context.Context, place string, opts Options) (*Store, error) {
	return Open(ctx, place, opts)
}

func newAt(place string, opts Options) *Store { return New(place, opts) }

// raw is a connection that has nothing to do with ours, as another program would make one.
func raw(t testing.TB, s *Store) *sql.DB {
	t.Helper()
	return rawFile(t, s.Path())
}

func readerOf(s *Store) *sql.DB { return s.db.conn.engine.(*sqliteEngine).reader }

func writerOf(s *Store) *sql.DB { return s.db.conn.engine.(*sqliteEngine).writer }

// holdWriteLock begins a transaction of another program that keeps ours from writing until release is called.
func holdWriteLock(t testing.TB, s *Store) (release func()) {
	t.Helper()
	db := raw(t, s)
	mustExec(t, db, "BEGIN IMMEDIATE")
	return func() { mustExec(t, db, "ROLLBACK") }
}

func dropGuards() []string {
	return []string{"DROP TRIGGER audit_refuses_update", "DROP TRIGGER audit_refuses_delete",
		"DROP TRIGGER audit_insert_extends_chain"}
}

// dropOneGuard removes a single guard of the audit.
func dropOneGuard() string { return dropGuards()[0] }

// textNoMore puts into row 4 of the audit what our columns cannot hold.
func textNoMore() []string {
	return []string{"CREATE TABLE loose AS SELECT * FROM audit", "DROP TABLE audit", "ALTER TABLE loose RENAME TO audit",
		"UPDATE audit SET message = NULL, paths = x'00ff' WHERE seq = 4"}
}

// waitUntilEnded returns when the other processes can know that the process of that name has ended.
func waitUntilEnded(testing.TB, *Store, string) {} // a lock is dropped before its holder can be waited for

// waitUntilNoted returns when other processes can know that this one writes, which takes a while.
func waitUntilNoted(s *Store) {
	for e := s.db.conn.engine.(*sqliteEngine); ; time.Sleep(time.Millisecond) {
		if slices.ContainsFunc(e.users(), func(u user) bool { return !u.Writing.IsZero() }) {
			return
		}
	}
}

// analyze brings the statistics up to date that a database in use has.
func analyze(testing.TB, *Store) {} // none are used

func runEngineChild(ctx context.Context, part string, args []string) error {
	switch part {
	case "open-under-umask":
		s, err := Open(ctx, args[0], Options{})
		if err != nil {
			return err
		}
		return s.Ledger.Record(ctx, attempt("u"), nil) // left open, so that -wal and -shm stay
	case "open-and-print-error":
		_, err := Open(ctx, args[0], Options{})
		fmt.Println(err)
		return nil
	}
	return fmt.Errorf("unknown part %q", part)
}

func versionAt(t testing.TB, place string) (version int) {
	t.Helper()
	must.Do(t, rawFile(t, filepath.Join(place, databaseName)).QueryRow("PRAGMA user_version").Scan(&version))
	return version
}

// freePages is how many pages of the file hold nothing.
func freePages(t testing.TB, s *Store) (n int) {
	t.Helper()
	must.Do(t, raw(t, s).QueryRow("PRAGMA freelist_count").Scan(&n))
	return n
}

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// overwrite puts n bytes of rubbish at the offset.
func overwrite(t testing.TB, path string, offset int64, n int) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	defer func() { _ = f.Close() }()
	must.Get(f.WriteAt(bytes.Repeat([]byte{0xa5}, n), offset))(t)
}

// snapshot is the content of the database file in dir.
func snapshot(dir string) []byte {
	b, err := os.ReadFile(filepath.Join(dir, databaseName))
	if err != nil {
		return nil
	}
	return b
}

func rawFile(t testing.TB, path string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// change makes a database in dir and runs the statements on it as another program would.
func change(t testing.TB, dir string, statements ...string) {
	t.Helper()
	s := open(t, dir, Options{})
	must.Do(t, s.Close())
	db := rawFile(t, s.Path())
	mustExec(t, db, statements...)
	must.Do(t, db.Close())
}
