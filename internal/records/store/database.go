package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

	// readContext returns the context of a transaction's reads; see record.ShortReads.
	readContext(ctx context.Context) context.Context

	// checkGuards reports whether the guards of the audit are there.
	checkGuards(ctx context.Context) error

	// checkStructure reads the whole database, and returns what is wrong with its structure; "" for nothing.
	checkStructure(ctx context.Context) (finding string, err error)

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

// unreleased returns the fault of tables that are older than the first migration, which makes all of them anew: only
// programs from before the first release have written such ones.
func unreleased(database string, version, first int64, otherPlace string) error {
	return fault.New(fault.Misconfigured, "the %s was written by a claudeops from before the first release (schema %d, "+
		"this one begins at %d), and nothing was changed; open it once with a version that makes schema %[3]d of it, "+
		"or name another %[4]s", database, version, first, otherPlace)
}

// retryAfter is the reported wait after a call that failed because the database could not be used for a while.
const retryAfter = 5 * time.Second

// temporaryFault returns the fault of a temporary failure: waiting is enough.
func temporaryFault(err error, format string, args ...any) error {
	e := fault.Wrap(err, fault.Timeout, format, args...)
	e.RetryAfter = retryAfter
	return e.Awaits(waitsForDatabase)
}

// database is shared by the parts of a Store. It opens itself at first use: every read, every write and every lock goes
// through open.
type database struct {
	dir  string
	opts Options

	sem    chan struct{} // holds a token while somebody looks at the fields below
	conn   *connection   // nil until it is open
	closed bool

	connected *heldLocks // of the connections of agents that this process serves
	running   *heldLocks // of the scripts that this process runs
	claimed   *heldLocks // of its tools that write

	rows     rowMemory // of the audit
	refusals recentRefusals
	root     root // of local repositories

	server  serverClock
	turns   turns   // of those who write
	readers readers // of those who read

	appending sync.Map // *sql.Tx that have added rows to the audit, until they end
}

// connection holds an open database.
type connection struct {
	engine
	locks locks
}

func newDatabase(dir string, opts Options) *database {
	d := &database{dir: dir, opts: opts.withDefaults(), sem: make(chan struct{}, 1)}
	d.turns = turns{one: make(chan struct{}, 1), patience: d.opts.BusyTimeout}
	d.readers = readers{free: make(chan struct{}, d.opts.Readers), patience: d.opts.BusyTimeout}
	d.connected, d.running, d.claimed = newHeldLocks(d), newHeldLocks(d), newHeldLocks(d)
	return d
}

// ensureConnected returns the connection, and opens it if needed. A failure applies to this call; the next one tries
// again.
func (d *database) ensureConnected(ctx context.Context) (*connection, error) {
	select {
	case d.sem <- struct{}{}:
		defer func() { <-d.sem }()
	case <-ctx.Done():
		return nil, fault.From(ctx.Err())
	}
	if d.closed {
		return nil, fault.Wrap(errors.New("the store is closed"), fault.Internal,
			"claudeops is shutting down; try again later")
	}
	if d.conn == nil {
		c, err := d.connect(ctx)
		if err != nil {
			return nil, err
		}
		d.conn = c
	}
	return d.conn, nil
}

func (d *database) connect(ctx context.Context) (c *connection, err error) {
	was, err := d.checkKind()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			d.noteKind(was)
		}
	}()
	if d.opts.DatabaseURL != "" {
		e, err := openPostgres(ctx, d.opts)
		if err != nil {
			return nil, err
		}
		locks := newSessionLocks(d, e)
		if err := locks.enter(ctx); err != nil {
			return nil, errors.Join(e.asFault(ctx, err), e.close())
		}
		return &connection{e, locks}, nil
	}
	e, err := openSQLite(ctx, d.dir, d.opts)
	if err != nil {
		return nil, err
	}
	return &connection{e, newFileLocks(e.dir, d.opts.NewID)}, nil
}

// now returns the time that dates the records and by which they are judged: with PostgreSQL that of its server, so that
// machines whose clocks differ agree. Options.Now stands in for it.
func (d *database) now() time.Time {
	if d.opts.Now != nil {
		return d.opts.Now()
	}
	if now, known := d.server.now(); known {
		return now
	}
	return time.Now()
}

// path returns where the database is, for messages, whether it exists or not.
func (d *database) path() string {
	if d.opts.DatabaseURL == "" {
		return filepath.Join(d.dir, databaseName)
	}
	config, err := parseURL(d.opts.DatabaseURL, d.opts.BusyTimeout)
	if err != nil {
		return "PostgreSQL"
	}
	return nameOf(config)
}

func (d *database) close() error {
	d.sem <- struct{}{}
	defer func() { <-d.sem }()
	if d.closed || d.conn == nil {
		d.closed = true
		return nil
	}
	d.closed = true
	return d.conn.asFault(context.Background(), errors.Join(d.conn.locks.close(), d.conn.close()))
}

// writeTx runs fn in a transaction while no other process writes; policyOf knows the policy of before it. It refuses,
// with fault.Internal, a context that read or write has made: such a call holds a connection, and would wait for a
// second one.
func (d *database) writeTx(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	if d.held(ctx) != nil {
		return fault.New(fault.Internal, "a call that reads the records wanted to write them at the same time")
	}
	c, err := d.ensureConnected(ctx)
	if err != nil {
		return err
	}
	if err := c.locks.ready(ctx); err != nil {
		return c.asFault(ctx, err)
	}
	ctx = context.WithValue(ctx, policyKey{d}, d.policyOf(ctx)) // read before others wait for the transaction
	tx, over, err := d.turns.beginTurn(ctx, c)
	if err != nil {
		return err
	}
	defer over()
	defer func() { _ = tx.Rollback() }() // without effect after a commit
	err = fn(d.holding(ctx, tx), tx)
	_, appended := d.appending.LoadAndDelete(tx)
	if err != nil {
		return c.asFault(ctx, err)
	}
	err = tx.Commit()
	over() // a goroutine woken by this may write
	if err != nil {
		return c.asFault(ctx, err)
	}
	if appended && d.opts.Appended != nil {
		d.opts.Appended(ctx)
	}
	return nil
}

// policyKey is under what a context has the hash of the policy by which its call is judged.
type policyKey struct{ of *database }

// policyOf returns the hash of the policy for the records of a call: that of its transaction, or else of now.
func (d *database) policyOf(ctx context.Context) string {
	if hash, known := ctx.Value(policyKey{d}).(string); known {
		return hash
	}
	if d.opts.Policy == nil {
		return ""
	}
	return d.opts.Policy()
}

// holdsKey is under what a context has the transaction of a database that its call has begun.
type holdsKey struct{ of *database }

func (d *database) holding(ctx context.Context, tx *sql.Tx) context.Context {
	return context.WithValue(ctx, holdsKey{d}, tx)
}

// held returns the transaction that the call of this context has begun; nil if it has none.
func (d *database) held(ctx context.Context) *sql.Tx {
	tx, _ := ctx.Value(holdsKey{d}).(*sql.Tx)
	return tx
}

// withSnapshot runs fn with a context whose reads share one view of the database. They follow one another.
func (d *database) withSnapshot(ctx context.Context, fn func(context.Context) error) error {
	return d.readTx(ctx, func(ctx context.Context, _ *sql.Tx) error { return fn(ctx) })
}

// readTx runs fn on one consistent view of the database. fn gets a context that holds the transaction: a read with it
// uses the same one, so that no call takes a second connection while it holds one. A call that waits for a connection
// for too long is fault.Timeout.
func (d *database) readTx(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	if tx := d.held(ctx); tx != nil {
		return d.conn.asFault(ctx, fn(d.conn.readContext(ctx), tx))
	}
	c, err := d.ensureConnected(ctx)
	if err != nil {
		return err
	}
	if err := c.locks.usable(); err != nil {
		return err
	}
	over, err := d.readers.acquireReader(ctx, d.path())
	if err != nil {
		return err
	}
	defer over()
	tx, err := c.beginRead(ctx)
	if err != nil {
		return c.asFault(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	return c.asFault(ctx, fn(d.holding(c.readContext(ctx), tx), tx))
}

// query reads with one query, and calls scan for each row.
func (d *database) query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return d.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return queryRows(ctx, tx, scan, query, args...) })
}

// first reads the first row of a query into dest; found is false if there is none.
func (d *database) first(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	err = d.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, query, args...).Scan(dest...)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return found, err
}

// exec writes with one statement.
func (d *database) exec(ctx context.Context, statement string, args ...any) error {
	return d.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

// acquireLock takes a new lock and returns its name.
func (d *database) acquireLock(ctx context.Context) (string, error) {
	c, err := d.ensureConnected(ctx)
	if err != nil {
		return "", err
	}
	name, err := c.locks.acquire(ctx)
	return name, c.asFault(ctx, err)
}

func (d *database) releaseLock(name string) {
	if c, err := d.ensureConnected(context.Background()); err == nil { // a store that is closed holds no lock any more
		c.locks.release(name)
	}
}

// endedLocks reports which of the locks are not held any more.
func (d *database) endedLocks(ctx context.Context, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	c, err := d.ensureConnected(ctx)
	if err != nil {
		return nil, err
	}
	ended, err := c.locks.released(ctx, names)
	return ended, c.asFault(ctx, err)
}

// turns lets one call of this process write at a time, and bounds how long one waits until it can: for the calls before
// it and for other processes, all together.
type turns struct {
	one      chan struct{} // full while a call writes or waits for others
	patience time.Duration
	stuck    atomic.Bool // a call has waited in vain, and none could write since
}

// stuckPatience is how long a call waits after another one has waited in vain: otherwise a call that writes several
// times, as a proposal does, would wait the full time again and again.
const stuckPatience = time.Second

// beginTurn begins a transaction that writes; over is to be called when it has ended. A call that could not begin is
// timeout, with who holds the records; nothing was written then.
func (t *turns) beginTurn(ctx context.Context, c *connection) (tx *sql.Tx, over func(), err error) {
	began, patience := time.Now(), t.patience
	if t.stuck.Load() {
		patience = min(patience, stuckPatience)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !take(waiting, t.one) {
		return nil, nil, t.inVain(ctx, c, began, waiting.Err())
	}
	tx, err = c.beginWrite(ctx, waiting)
	if err != nil {
		<-t.one
		var known *fault.Error
		if !errors.As(err, &known) && (waiting.Err() != nil || causeOf(err) == causeBusy) {
			err = t.inVain(ctx, c, began, err)
		}
		return nil, nil, c.asFault(ctx, err)
	}
	t.stuck.Store(false)
	written := c.writing()
	return tx, sync.OnceFunc(func() { written(); <-t.one }), nil
}

// inVain returns the failure of a call that could not begin to write.
func (t *turns) inVain(ctx context.Context, c *connection, began time.Time, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.From(ctx.Err())
	}
	if ctx.Err() == nil {
		t.stuck.Store(true)
	}
	const lookFor = 2 * time.Second
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	who, since, err := c.holder(looking)
	if err != nil {
		return temporaryFault(cause, "%s; this call waited %s and wrote nothing", fault.From(err).Message, waited(began))
	}
	from := "since " + began.UTC().Format(time.TimeOnly) + " UTC or before"
	if !since.IsZero() {
		from = "since " + since.UTC().Format(time.TimeOnly) + " UTC"
	}
	e := fault.Wrap(cause, fault.Timeout,
		"the records are locked by %s, %s; this call waited %s and wrote nothing. Try again when that has ended, or end it",
		who, from, waited(began))
	e.RetryAfter = t.patience
	return e
}

// readers lets as many calls of this process read at a time as there are connections for that.
type readers struct {
	free     chan struct{} // has a token for each call that reads
	patience time.Duration
}

// acquireReader waits for a connection of the database at path; over is to be called when the call has read.
func (r *readers) acquireReader(ctx context.Context, path string) (over func(), err error) {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	if take(waiting, r.free) {
		return func() { <-r.free }, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fault.From(ctx.Err())
	}
	return nil, temporaryFault(waiting.Err(), "all connections to the database %s that read were in use for %s; try again",
		path, waited(began))
}

// take puts a token into a channel, and reports whether it has. It waits for room until ctx ends. Where there is room,
// it does not matter how late the call is.
func take(ctx context.Context, tokens chan<- struct{}) bool {
	select {
	case tokens <- struct{}{}:
		return true
	default:
	}
	select {
	case tokens <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func waited(began time.Time) string {
	d := time.Since(began)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
}
