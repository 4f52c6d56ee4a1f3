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
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// engine hides the differences between the databases. Errors are those of the driver unless they are faults already;
// asFault converts them to faults.
type engine interface {
	// beginWrite begins a transaction that sees everything committed before it. Until it ends, no other writes, in
	// whatever process. It waits for others until waiting ends; of the calls of one process there is one at a time.
	beginWrite(ctx, waiting context.Context) (*sql.Tx, error)

	// writing tells others that this process writes, if it takes long, until done is called.
	writing() (done func())

	// holder returns who keeps others from writing, and since when; the zero time where that is not known. The error is a
	// fault if the database does not say.
	holder(ctx context.Context) (who string, since time.Time, err error)

	// beginRead begins a transaction that sees one consistent view. It does not wait for writers.
	beginRead(ctx context.Context) (*sql.Tx, error)

	// check looks for damage that no transaction shows by itself, missing guards of the audit included.
	check(ctx context.Context) error

	// size is how many bytes the database takes on its disk.
	size(ctx context.Context) (int64, error)

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

// newestVersion returns the number of the last migration of the folder: the digits that its file's name begins with.
func newestVersion(migrations fs.FS, dir string) (int64, error) {
	entries, err := fs.ReadDir(migrations, dir) // sorted by name
	if err != nil || len(entries) == 0 {
		return 0, errors.Join(err, fs.ErrNotExist)
	}
	digits, _, _ := strings.Cut(path.Base(entries[len(entries)-1].Name()), "_")
	return strconv.ParseInt(digits, 10, 64)
}

// retryAfter is the reported wait after a call that failed because the database could not be used for a while.
const retryAfter = 5 * time.Second

// again returns the fault of a temporary failure: waiting is enough.
func again(err error, format string, args ...any) error {
	e := fault.Wrap(err, fault.Timeout, format, args...)
	e.RetryAfter = retryAfter
	return e.Awaits(waitsForDatabase)
}
