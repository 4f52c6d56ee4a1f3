package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// What only SQLite knows is in the files whose names begin with sqlite, in files.go, locks_files.go and
// migrations/sqlite.

// busySlice is how long SQLite itself waits for a lock. It ignores the context meanwhile, so it is short, and
// retryWhileBusy repeats it after busyPause (SQLite gives up at once where waiting could deadlock).
const (
	busySlice = 100 * time.Millisecond
	busyPause = time.Millisecond
)

// sqliteEngine is an open database file.
type sqliteEngine struct {
	stateFolder
	busy   time.Duration
	file   fs.FileInfo // the database file when it was opened
	writer *sql.DB
	reader *sql.DB

	changes  changeCounter
	presence presence
	now      func() time.Time
}

// openSQLite opens the database in a folder, and makes or migrates it first if need be; see Store.
func openSQLite(ctx context.Context, dir string, opts Options) (_ *sqliteEngine, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return nil, fault.Wrap(err, fault.Misconfigured, "no state folder is configured; name one with CLAUDEOPS_STATE_DIR")
	}
	folder := stateFolder{dir: abs, path: filepath.Join(abs, databaseName), migrations: opts.migrations}
	e := &sqliteEngine{stateFolder: folder, busy: opts.BusyTimeout, now: time.Now}
	if opts.Now != nil {
		e.now = opts.Now
	}
	defer func() {
		if err != nil {
			_ = e.close()
		}
	}()
	ready, err := e.connect(ctx, opts)
	if err != nil || ready {
		return e, err
	}
	if opts.MustExist && e.file == nil {
		return nil, fault.New(fault.NotFound, "there is no database in the state folder %s yet", e.dir)
	}
	if err := e.close(); err != nil {
		return nil, e.asFault(ctx, err)
	}
	if err := e.makeDir(opts.MakeParents); err != nil {
		return nil, err
	}
	if err := e.prepare(ctx, opts); err != nil {
		return nil, err
	}
	ready, err = e.connect(ctx, opts)
	if err == nil && !ready {
		err = fault.New(fault.Internal, "the database %s changed while it was opened; try again", e.path)
	}
	return e, err
}

// connect opens the pools if there is a database, and reports whether it can be used as it is. It registers this process
// as a user of the database before it looks, so that no other process changes the tables in between.
func (e *sqliteEngine) connect(ctx context.Context, opts Options) (ready bool, err error) {
	if e.file, err = e.stat(); err != nil || e.file == nil {
		return false, err
	}
	if e.writer, err = openPool(e.path, busySlice, true, opts.pragmas()...); err != nil {
		return false, e.asFault(ctx, err)
	}
	if e.reader, err = openPool(e.path, busySlice, false, opts.pragmas()...); err != nil {
		return false, e.asFault(ctx, err)
	}
	e.reader.SetMaxOpenConns(opts.Readers)
	e.presence.enter(e.dir, opts.Process, e.now(), rand.Text())
	var state openState
	err = e.retryWhileBusy(ctx, func() error {
		state, err = e.checkState(ctx, e.reader)
		return err
	})
	return err == nil && state.ready(), e.asFault(ctx, err)
}

func (e *sqliteEngine) close() error {
	e.changes.close()
	e.presence.leave()
	var errs []error
	for _, db := range []*sql.DB{e.reader, e.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// beginWrite takes the write lock of the file.
func (e *sqliteEngine) beginWrite(ctx, waiting context.Context) (tx *sql.Tx, err error) {
	if err := e.checkNotReplaced(); err != nil {
		return nil, err
	}
	for {
		if tx, err = e.writer.BeginTx(ctx, nil); causeOf(err) != causeBusy || waiting.Err() != nil {
			return tx, err
		}
		select {
		case <-waiting.Done():
			return nil, err
		case <-time.After(busyPause):
		}
	}
}

func (e *sqliteEngine) writing() (done func()) { return e.presence.writing(e.now) }

// holder asks the system, and the process itself as far as it is one of ours.
func (e *sqliteEngine) holder(context.Context) (who string, since time.Time, err error) {
	pid := lockedBy(e.path)
	for _, u := range e.users() {
		if u.PID == pid && pid != 0 || pid == 0 && !u.Writing.IsZero() {
			return u.String(), u.Writing, nil
		}
	}
	if pid == 0 {
		return "a program that the system does not name", time.Time{}, nil
	}
	return user{PID: pid, What: programOf(pid)}.String(), time.Time{}, nil
}

func (e *sqliteEngine) beginRead(ctx context.Context) (*sql.Tx, error) {
	if err := e.checkNotReplaced(); err != nil {
		return nil, err
	}
	tx, err := e.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if err := e.retryWhileBusy(ctx, func() error { return takeSnapshot(ctx, tx) }); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// checkNotReplaced refuses to go on with a file that was moved, deleted or replaced: what is written there is lost, and
// what is read there is of yesterday.
func (e *sqliteEngine) checkNotReplaced() error {
	info, err := os.Stat(e.path)
	if err != nil || !os.SameFile(info, e.file) {
		return fault.Wrap(err, fault.Internal,
			"the database %s was moved, deleted or replaced while in use; restart claudeops", e.path)
	}
	return nil
}

// retryWhileBusy repeats try while the database is locked, for e.busy at most and not beyond the end of the context.
func (e *sqliteEngine) retryWhileBusy(ctx context.Context, try func() error) error {
	for waited := time.Duration(0); ; waited += busySlice {
		err := try()
		if causeOf(err) != causeBusy {
			return err
		}
		if waited >= e.busy {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

func (e *sqliteEngine) check(ctx context.Context) error {
	finding, err := quickCheck(ctx, e.reader)
	if err != nil {
		return err
	}
	if finding != "" {
		return fault.Wrap(errors.New(finding), fault.Internal,
			"the database %s is damaged; run `claudeops audit verify` and restore a backup", e.path)
	}
	guards, err := sqliteGuards(ctx, e.reader)
	if err == nil && guards != 3 {
		err = guardsMissing(e.path)
	}
	return err
}

func (e *sqliteEngine) size(context.Context) (bytes int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(e.path + suffix)
		switch {
		case err == nil:
			bytes += info.Size()
		case !errors.Is(err, fs.ErrNotExist):
			return 0, err
		}
	}
	return bytes, nil
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

// sqliteGuards counts the triggers that protect the audit.
func sqliteGuards(ctx context.Context, db *sql.DB) (count int, err error) {
	const query = `SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'audit' AND name IN
		('audit_insert_extends_chain', 'audit_refuses_update', 'audit_refuses_delete')`
	err = db.QueryRowContext(ctx, query).Scan(&count)
	return count, err
}

// sqliteCause returns causeOther also for errors that are not of SQLite.
func sqliteCause(err error) cause {
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
