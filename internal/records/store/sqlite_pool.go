package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// applicationID marks our database files (PRAGMA application_id): "ClOp" in ASCII.
const applicationID = 0x436c4f70

const sqliteReaders = 4 // connections for reading, unless Options say otherwise

// openPool returns a pool of connections to the database file; none is made yet. A writing pool has one connection,
// whose transactions take the write lock at once, so that no two can deadlock on upgrading a read lock. Pragmas are set
// after ours.
func openPool(path string, busy time.Duration, writing bool, pragmas ...string) (*sql.DB, error) {
	q := url.Values{}
	q.Set("_defensive", "1")
	q.Set("_dqs", "0")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "trusted_schema(0)")
	q.Add("_pragma", "recursive_triggers(1)")
	q.Add("_pragma", "synchronous(FULL)")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
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
	db := sql.OpenDB(statementKeeper{connector})
	if writing {
		db.SetMaxOpenConns(1)
		return db, nil
	}
	db.SetMaxOpenConns(sqliteReaders)
	db.SetMaxIdleConns(sqliteReaders)
	return db, nil
}

// takeSnapshot fixes what the transaction sees: SQLite takes its view with the first statement that reads.
func takeSnapshot(ctx context.Context, tx *sql.Tx) error {
	var any int
	return tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM sqlite_schema LIMIT 1)").Scan(&any)
}

// fileState holds the header of a database file.
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

// writeState writes what readState reads.
func writeState(ctx context.Context, db *sql.DB, version int64) error {
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
