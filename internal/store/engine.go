package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// engine is what the databases do differently. Errors are those of the driver unless they are faults already; asFault makes
// faults of them.
type engine interface {
	// beginWrite begins a transaction that sees everything committed before it. Until it ends, no other writes, in
	// whatever process.
	beginWrite(ctx context.Context) (*sql.Tx, error)

	// beginRead begins a transaction that sees one consistent view. It does not wait for writers.
	beginRead(ctx context.Context) (*sql.Tx, error)

	// check looks for damage that no transaction shows by itself, missing guards of the audit included.
	check(ctx context.Context) error

	// asFault turns an error into a fault that says what the operator has to do. Faults and nil are passed on.
	asFault(ctx context.Context, err error) error

	// close ends all connections. Calls after the first do nothing.
	close() error
}

// cause sorts the errors of the drivers by what has to be done about them.
type cause int

const (
	causeOther cause = iota
	causeBusy
	causeInterrupted
	causeCorrupt
	causeForeign // not a database of ours
	causeFull
	causeReadOnly
	causeUnopenable
	causeIO
	causeUnique
)

func causeOf(err error) cause {
	if c := sqliteCause(err); c != causeOther {
		return c
	}
	return postgresCause(err)
}

//go:embed migrations/*/*.sql
var migrations embed.FS

// Where the migrations are. The same number does the same on both.
const (
	sqliteMigrations   = "migrations/sqlite"
	postgresMigrations = "migrations/postgres"
)

// newestVersion is the number of the last migration that this program knows: the digits that its file's name begins
// with.
func newestVersion(dir string) (int64, error) {
	entries, err := migrations.ReadDir(dir) // sorted by name
	if err != nil || len(entries) == 0 {
		return 0, errors.Join(err, fs.ErrNotExist)
	}
	digits, _, _ := strings.Cut(path.Base(entries[len(entries)-1].Name()), "_")
	return strconv.ParseInt(digits, 10, 64)
}
