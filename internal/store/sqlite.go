package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What only SQLite knows is in this file and in migrations/sqlite.

// applicationID marks our database files (PRAGMA application_id): "ClOp" in ASCII.
const applicationID = 0x436c4f70

// busySlice is how long SQLite itself waits for a lock. It does not watch the context while it does, so it is short,
// and Store.patiently repeats it after busyPause (SQLite gives up at once where waiting could deadlock).
const (
	busySlice = 100 * time.Millisecond
	busyPause = time.Millisecond
)

// openPool returns a pool of connections to the database file; none is made yet. A writing pool has one connection,
// whose transactions take the write lock at once, so that no two can deadlock on upgrading a read lock.
func openPool(path string, busy time.Duration, writing bool) (*sql.DB, error) {
	q := url.Values{}
	q.Set("_defensive", "1")
	q.Set("_dqs", "0")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "trusted_schema(0)")
	q.Add("_pragma", "recursive_triggers(1)")
	q.Add("_pragma", "synchronous(FULL)")
	if writing {
		q.Set("_txlock", "immediate")
	} else {
		q.Set("_query_only", "1")
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	if writing {
		db.SetMaxOpenConns(1)
		return db, nil
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	return db, nil
}

// takeView fixes what the transaction sees: SQLite takes its view with the first statement that reads.
func takeView(ctx context.Context, tx *sql.Tx) error {
	var any int
	return tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM sqlite_schema LIMIT 1)").Scan(&any)
}

// fileState is what the header of a database file says.
type fileState struct {
	application int64
	version     int64 // of the last migration
	journal     string
}

func readState(ctx context.Context, db *sql.DB) (fileState, error) {
	var s fileState
	for pragma, dest := range map[string]any{
		"application_id": &s.application, "user_version": &s.version, "journal_mode": &s.journal,
	} {
		if err := db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(dest); err != nil {
			return s, err
		}
	}
	return s, nil
}

// stamp writes what readState reads.
func stamp(ctx context.Context, db *sql.DB, version int64) error {
	for _, pragma := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", version),
		"PRAGMA journal_mode = WAL",
	} {
		if _, err := db.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return nil
}

// quickCheck returns what SQLite finds wrong with the structure of the file, or "".
func quickCheck(ctx context.Context, db *sql.DB) (string, error) {
	var finding string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&finding); err != nil {
		return "", err
	}
	if finding == "ok" {
		return "", nil
	}
	return finding, nil
}

// auditGuards counts the triggers that protect the audit.
func auditGuards(ctx context.Context, db *sql.DB) (count int, err error) {
	const query = `SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'audit' AND name IN
		('audit_insert_extends_chain', 'audit_refuses_update', 'audit_refuses_delete')`
	err = db.QueryRowContext(ctx, query).Scan(&count)
	return count, err
}

// cause sorts the errors of the driver by what has to be done about them.
type cause int

const (
	causeOther cause = iota
	causeBusy
	causeInterrupted
	causeCorrupt
	causeForeign // not a database at all
	causeFull
	causeReadOnly
	causeUnopenable
	causeIO
	causeUnique
)

func causeOf(err error) cause {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return causeOther
	}
	switch code := e.Code(); code & 0xff { // the low byte is the primary code, the rest refines it
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return causeBusy
	case sqlite3.SQLITE_INTERRUPT:
		return causeInterrupted
	case sqlite3.SQLITE_CORRUPT:
		return causeCorrupt
	case sqlite3.SQLITE_NOTADB:
		return causeForeign
	case sqlite3.SQLITE_FULL:
		return causeFull
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return causeReadOnly
	case sqlite3.SQLITE_CANTOPEN:
		return causeUnopenable
	case sqlite3.SQLITE_IOERR:
		return causeIO
	case sqlite3.SQLITE_CONSTRAINT:
		if code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
			return causeUnique
		}
		if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER { // what we append always follows the last row
			return causeCorrupt
		}
	}
	return causeOther
}
