package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// Options are how a store is opened. The zero value is fit for use.
type Options struct {
	// DatabaseURL, if not empty, is the PostgreSQL database that is used instead of a file in the state folder; see
	// OpenURL.
	DatabaseURL string
	// Now is the clock for what the store dates itself: when a pull request was recorded, when a notice was settled, and
	// records that come without a time. Default: time.Now.
	Now func() time.Time
	// NewID makes the names by which processes that share a store know each other. No two processes may ever make the
	// same. They become names of files. Default: crypto/rand.Text.
	NewID func() string
	// BusyTimeout is how long a call waits for other processes before it gives up. Default: 15 seconds.
	BusyTimeout time.Duration
	// MakeParents also makes the folders above the state folder, as is right for a default place, not for one that
	// somebody typed.
	MakeParents bool
	// MustExist refuses, with fault.NotFound, to make a new database: for commands that only look at one.
	MustExist bool
}

const defaultBusyTimeout = 15 * time.Second

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	return o
}

// Store is an open database. It is safe for concurrent use, by several processes too. All methods return *fault.Error:
// internal with what the operator has to do, timeout when the context ended, and what the method names.
type Store struct {
	path string
	opts Options
	engine
	presence
	holdings *holdings
}

// Open opens the database in the folder dir, and makes folder (mode 0700), database (0600) and tables if they are
// missing. It refuses, with fault.Misconfigured, a folder that cannot be used and a database that is not ours or of a newer
// program, and with fault.Internal one that is damaged, and leaves that as it is. A database of an older program is brought up to date. With
// opts.DatabaseURL it is OpenURL, and dir is not used.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	if opts.DatabaseURL != "" {
		return OpenURL(ctx, opts.DatabaseURL, opts)
	}
	opts = opts.withDefaults()
	e, err := openSQLite(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	return newStore(e.path, opts, e, newLockFiles(e.place, opts.NewID)), nil
}

// OpenURL opens the PostgreSQL database that the URL names, and makes the tables if they are missing; see the package
// documentation for what the URL and its user need. It refuses what Open refuses. Errors name host and database, never
// the URL or its password.
func OpenURL(ctx context.Context, url string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	e, err := openPostgres(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	return newStore(e.name(), opts, e, newSessions(e, opts.NewID)), nil
}

func newStore(path string, opts Options, e engine, p presence) *Store {
	return &Store{path: path, opts: opts, engine: e, presence: p, holdings: newHoldings(p)}
}

// Path is where the database is, for people: its file, or host, port and name on PostgreSQL.
func (s *Store) Path() string { return s.path }

// Close ends the use of the store. Proposals that it reserved and did not finish count as abandoned from then on. Calls
// after the first do nothing.
func (s *Store) Close() error {
	return s.fail(context.Background(), errors.Join(s.leave(), s.close()))
}

// Ping reports whether the database can be read. It is cheap.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, func(*sql.Tx) error { return nil })
}

// Check reports whether the database can be read and written, whether its structure is sound, and whether the audit is
// protected. It may read the whole database.
func (s *Store) Check(ctx context.Context) error {
	if err := s.write(ctx, func(*sql.Tx) error { return nil }); err != nil {
		return err
	}
	return s.fail(ctx, s.check(ctx))
}

// guardsMissing is what check finds when the audit is not protected any more.
func guardsMissing(database string) error {
	return fault.New(fault.Internal, "somebody removed the triggers that protect the audit in %s; "+
		"run `claudeops audit verify` and restore a backup", database)
}

// write runs fn in a transaction while no other process writes.
func (s *Store) write(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := s.beginWrite(ctx)
	if err != nil {
		return s.fail(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // without effect after a commit
	if err := fn(tx); err != nil {
		return s.fail(ctx, err)
	}
	return s.fail(ctx, tx.Commit())
}

// read runs fn on one consistent view of the database.
func (s *Store) read(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := s.beginRead(ctx)
	if err != nil {
		return s.fail(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	return s.fail(ctx, fn(tx))
}
