package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// What only SQLite knows is in the files whose names begin with sqlite, in locks.go and
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
	lent   atomic.Int32 // how many reads were lent the connection that writes; see lends

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
		return nil, fault.New(fault.NotFound, "there is no database in the state folder %s yet; "+
			"claudeops init sets Claude Ops up, and the first claudeops serve or proposal makes it", e.dir)
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

// connect opens the pools if there is a database, and reports whether it can be used as it is. It registers this
// process as a user of the database before it looks, so that no other process changes the tables in between.
func (e *sqliteEngine) connect(ctx context.Context, opts Options) (ready bool, err error) {
	if e.file, err = e.stat(); err != nil || e.file == nil {
		return false, err
	}
	if e.writer, err = openPool(e.path, busySlice, true, opts.pragmas()...); err != nil {
		return false, e.asFault(ctx, err)
	}
	e.writer.SetMaxOpenConns(1 + opts.Readers) // what was lent never keeps a call from writing
	e.writer.SetMaxIdleConns(1)
	if e.reader, err = openPool(e.path, busySlice, false, opts.pragmas()...); err != nil {
		return false, e.asFault(ctx, err)
	}
	e.reader.SetMaxOpenConns(opts.Readers)
	e.presence.enter(e.dir, opts.Process, e.now(), rand.Text())
	var state openState
	err = e.retryWhileBusy(ctx, func() error {
		state, err = e.checkState(ctx, e.writer)
		return err
	})
	return err == nil && state.isReady(), e.asFault(ctx, err)
}

func (e *sqliteEngine) close() error {
	e.changes.close()
	e.presence.removePresence()
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
	if e.writer.Stats().InUse > 0 { // lent: this process reads and writes at a time
		e.lent.Store(maxLent)
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
	pool := e.reader
	if e.lends() {
		pool = e.writer
	}
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	// It takes microseconds: watching whether ctx ends would take longer.
	steady := context.WithoutCancel(ctx)
	if err := e.retryWhileBusy(ctx, func() error { return takeSnapshot(steady, tx) }); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// maxLent bounds the reads that are lent the connection that writes. Each compiles its statements anew, so one
// connection more pays off later.
const maxLent = 32

// lends reports whether a read gets the connection that writes. Each connection parses the whole schema before its
// first statement, which takes longer than most of what a short command does: such a process makes only one.
func (e *sqliteEngine) lends() bool {
	return e.writer.Stats().InUse == 0 && e.reader.Stats().OpenConnections == 0 && e.lent.Add(1) <= maxLent
}

func (e *sqliteEngine) readContext(ctx context.Context) context.Context {
	if record.AreShortReads(ctx) {
		return context.WithoutCancel(ctx)
	}
	return ctx
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

func (e *sqliteEngine) checkGuards(ctx context.Context) error {
	tx, err := e.beginRead(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	guards, err := sqliteGuards(ctx, tx)
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

// checkStructure asks on a connection of its own: one that has asked before remembers sums of the index of texts, and
// takes what others have added since for damage.
func (e *sqliteEngine) checkStructure(ctx context.Context) (finding string, err error) {
	if err := e.checkNotReplaced(); err != nil {
		return "", err
	}
	db, err := openPool(e.path, busySlice, false)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = e.retryWhileBusy(ctx, func() error {
		return db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&finding)
	})
	if finding == "ok" {
		finding = ""
	}
	return finding, err
}

// sqliteGuards counts the triggers that protect the audit.
func sqliteGuards(ctx context.Context, tx *sql.Tx) (count int, err error) {
	const query = `SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'audit' AND name IN
		('audit_insert_extends_chain', 'audit_refuses_update', 'audit_refuses_delete')`
	err = tx.QueryRowContext(ctx, query).Scan(&count)
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

// applicationID marks our database files (PRAGMA application_id): "ClOp" in ASCII.
const applicationID = 0x436c4f70

const sqliteReaders = 4 // connections for reading, unless Options say otherwise

// openPool returns a pool of connections to the database file; none is made yet. A writing pool has one connection,
// whose transactions take the write lock at once unless they only read, so that no two can deadlock on upgrading a read
// lock. Pragmas are set after ours.
func openPool(path string, busy time.Duration, writing bool, pragmas ...string) (*sql.DB, error) {
	q := url.Values{}
	q.Set("_defensive", "1")
	q.Set("_dqs", "0")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "trusted_schema(0)")
	q.Add("_pragma", "recursive_triggers(1)")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	if writing {
		q.Add("_pragma", "synchronous(FULL)") // the default, too; it has the schema parsed, which not all who read need
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
	db := sql.OpenDB(statementKeeper{connector, !writing})
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

// maxStatements bounds the compiled statements that a connection keeps. Beyond it, all unused ones are closed.
const maxStatements = 128

// statementKeeper makes connections that keep their statements compiled, since SQLite takes longer to compile most of
// ours than to run them. SQLite itself compiles one again when the schema has changed.
type statementKeeper struct {
	driver.Connector
	queryOnly bool // its connections refuse to write from the start
}

// sqliteConn lists the interfaces of database/sql that the driver's connections implement.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

func (k statementKeeper) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	able, ok := conn.(sqliteConn)
	if !ok {
		return conn, nil // slower, and as right
	}
	return &keepingConn{sqliteConn: able, queryOnly: k.queryOnly, kept: map[string]*keptStatement{}}, nil
}

// keepingConn is a connection with its compiled statements. As any connection, it is used by one goroutine at a time.
type keepingConn struct {
	sqliteConn
	queryOnly bool
	kept      map[string]*keptStatement
}

// BeginTx implements driver.ConnBeginTx. SQLite itself refuses to write in a transaction that only reads.
func (c *keepingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly != c.queryOnly {
		pragma := fmt.Sprintf("PRAGMA query_only = %t", opts.ReadOnly)
		if _, err := c.sqliteConn.ExecContext(ctx, pragma, nil); err != nil {
			return nil, err
		}
		c.queryOnly = opts.ReadOnly
	}
	return c.sqliteConn.BeginTx(ctx, opts)
}

// keptStatement is a compiled statement. It is busy while its rows are read.
type keptStatement struct {
	runner
	busy bool
}

// runner lists the interfaces of database/sql that the driver's statements implement.
type runner interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// QueryContext implements driver.QueryerContext.
func (c *keepingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &keptRows{rows, s}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *keepingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.ExecContext(ctx, args)
}

// Close implements driver.Conn.
func (c *keepingConn) Close() error {
	return errors.Join(c.closeUnused(), c.sqliteConn.Close())
}

// statement returns the compiled statement of a query; nil for one that is not kept, or whose rows are being read.
func (c *keepingConn) statement(ctx context.Context, query string) (*keptStatement, error) {
	if !keepsCompiled(query) {
		return nil, nil
	}
	if s := c.kept[query]; s != nil {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	if len(c.kept) >= maxStatements {
		if err := c.closeUnused(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(runner)
	if !ok {
		return nil, made.Close()
	}
	c.kept[query] = &keptStatement{runner: s}
	return c.kept[query], nil
}

// keepsCompiled reports whether a query is one statement that reads or writes rows.
func keepsCompiled(query string) bool {
	if strings.Contains(query, ";") {
		return false
	}
	verb, _, _ := strings.Cut(strings.TrimLeft(query, " \t\n"), " ")
	switch verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
		return true
	}
	return false
}

// closeUnused closes the unused statements.
func (c *keepingConn) closeUnused() error {
	var errs []error
	for query, s := range c.kept {
		if !s.busy {
			errs = append(errs, s.Close())
			delete(c.kept, query)
		}
	}
	return errors.Join(errs...)
}

// keptRows are rows of a kept statement.
type keptRows struct {
	driver.Rows
	of *keptStatement
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
	err := r.Rows.Close()
	r.of.busy = false
	return err
}
