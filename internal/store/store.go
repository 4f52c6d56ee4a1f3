package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// Options are how a store is opened. The zero value is fit for use.
type Options struct {
	// Now is the clock for what the store dates itself: when a pull request was recorded, and records that come without
	// a time. Default: time.Now.
	Now func() time.Time
	// BusyTimeout is how long a call waits for other processes before it gives up. Default: 15 seconds.
	BusyTimeout time.Duration
	// MakeParents also makes the folders above the state folder, as is right for a default place, not for one that
	// somebody typed.
	MakeParents bool
	// MustExist refuses, with fault.NotFound, to make a new database: for commands that only look at one.
	MustExist bool
}

const (
	defaultBusyTimeout = 15 * time.Second
	readers            = 4 // connections for reading
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	return o
}

// Store is an open database. It is safe for concurrent use, by several processes too. All methods return *fault.Error:
// internal with what the operator has to do, timeout when the context ended, and what the method names.
type Store struct {
	place
	opts   Options
	file   fs.FileInfo // the database file when it was opened
	writer *sql.DB
	reader *sql.DB
}

// Open opens the database in the folder dir, and makes folder (mode 0700), database (0600) and tables if they are
// missing. It refuses, with fault.Internal, a folder that cannot be used, and a database that is damaged, not ours, or
// of a newer program, and leaves that as it is.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return nil, fault.Wrap(err, fault.Internal, "no state folder is configured; name one with CLAUDEOPS_STATE_DIR")
	}
	s := &Store{place: place{dir: abs, path: filepath.Join(abs, databaseName)}, opts: opts.withDefaults()}
	ready, err := s.connect(ctx)
	if err != nil || ready {
		return s.opened(err)
	}
	if s.opts.MustExist && s.file == nil {
		return nil, fault.New(fault.NotFound, "there is no database in the state folder %s yet", s.dir)
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if err := s.makeDir(s.opts.MakeParents); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, s.opts); err != nil {
		return nil, err
	}
	ready, err = s.connect(ctx)
	if err == nil && !ready {
		err = fault.New(fault.Internal, "the database %s changed while it was opened; try again", s.path)
	}
	return s.opened(err)
}

// connect opens the pools if there is a database, and reports whether it can be used as it is.
func (s *Store) connect(ctx context.Context) (ready bool, err error) {
	if s.file, err = s.look(); err != nil || s.file == nil {
		return false, err
	}
	if s.writer, err = openPool(s.path, busySlice, true); err != nil {
		return false, s.fail(ctx, err)
	}
	if s.reader, err = openPool(s.path, busySlice, false); err != nil {
		return false, s.fail(ctx, err)
	}
	var state openState
	err = s.patiently(ctx, func() error {
		state, err = s.checkState(ctx, s.reader)
		return err
	})
	return err == nil && state.ready(), s.fail(ctx, err)
}

func (s *Store) opened(err error) (*Store, error) {
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Path is the database file.
func (s *Store) Path() string { return s.path }

// Close ends the use of the store. Calls after the first do nothing.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return s.fail(context.Background(), errors.Join(errs...))
}

// Ping reports whether the database can be read. It is cheap.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, func(*sql.Tx) error { return nil })
}

// Check reports whether the database can be read and written, whether its structure is sound, and whether the audit is
// protected. It reads the whole file.
func (s *Store) Check(ctx context.Context) error {
	if err := s.write(ctx, func(*sql.Tx) error { return nil }); err != nil {
		return err
	}
	finding, err := quickCheck(ctx, s.reader)
	if err != nil {
		return s.fail(ctx, err)
	}
	if finding != "" {
		return fault.Wrap(errors.New(finding), fault.Internal,
			"the database %s is damaged; run `claudeops audit verify` and restore a backup", s.path)
	}
	guards, err := auditGuards(ctx, s.reader)
	if err != nil {
		return s.fail(ctx, err)
	}
	if guards != 3 {
		return fault.New(fault.Internal, "somebody removed the triggers that protect the audit in %s; "+
			"run `claudeops audit verify` and restore a backup", s.path)
	}
	return nil
}

// stillThere refuses to go on with a file that was moved, deleted or replaced: what is written there is lost, and what
// is read there is of yesterday.
func (s *Store) stillThere() error {
	info, err := os.Stat(s.path)
	if err != nil || !os.SameFile(info, s.file) {
		return fault.Wrap(err, fault.Internal,
			"the database %s was moved, deleted or replaced while in use; restart claudeops", s.path)
	}
	return nil
}

// write runs fn in a transaction that holds the write lock from its beginning.
func (s *Store) write(ctx context.Context, fn func(*sql.Tx) error) error {
	if err := s.stillThere(); err != nil {
		return err
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return s.fail(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // without effect after a commit
	if err := fn(tx); err != nil {
		return s.fail(ctx, err)
	}
	return s.fail(ctx, tx.Commit())
}

// begin waits for the write lock.
func (s *Store) begin(ctx context.Context) (tx *sql.Tx, err error) {
	err = s.patiently(ctx, func() error {
		tx, err = s.writer.BeginTx(ctx, nil)
		return err
	})
	return tx, err
}

// read runs fn on one consistent view of the database.
func (s *Store) read(ctx context.Context, fn func(*sql.Tx) error) error {
	if err := s.stillThere(); err != nil {
		return err
	}
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.fail(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	err = s.patiently(ctx, func() error { return takeView(ctx, tx) })
	if err != nil {
		return s.fail(ctx, err)
	}
	return s.fail(ctx, fn(tx))
}

// patiently repeats try while the database is locked, for BusyTimeout at most and not beyond the end of the context.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	for waited := time.Duration(0); ; waited += busySlice {
		err := try()
		if causeOf(err) != causeBusy {
			return err
		}
		if waited >= s.opts.BusyTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyPause):
		}
	}
}
