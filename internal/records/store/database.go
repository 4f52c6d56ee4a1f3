package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

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
	d.connected, d.running = newHeldLocks(d), newHeldLocks(d)
	return d
}

// open returns the connection, and opens it if needed. A failure applies to this call; the next one tries again.
func (d *database) open(ctx context.Context) (*connection, error) {
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

// write runs fn in a transaction while no other process writes. It refuses, with fault.Internal, a context that read or
// write has made: such a call holds a connection, and would wait for a second one.
func (d *database) write(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	if d.held(ctx) != nil {
		return fault.New(fault.Internal, "a call that reads the records wanted to write them at the same time")
	}
	c, err := d.open(ctx)
	if err != nil {
		return err
	}
	if err := c.locks.ready(ctx); err != nil {
		return c.asFault(ctx, err)
	}
	tx, over, err := d.turns.begin(ctx, c)
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

// view runs fn with a context whose reads share one view of the database. They follow one another.
func (d *database) view(ctx context.Context, fn func(context.Context) error) error {
	return d.read(ctx, func(ctx context.Context, _ *sql.Tx) error { return fn(ctx) })
}

// read runs fn on one consistent view of the database. fn gets a context that holds the transaction: a read with it
// uses the same one, so that no call takes a second connection while it holds one. A call that waits for a connection
// for too long is fault.Timeout.
func (d *database) read(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	if tx := d.held(ctx); tx != nil {
		return d.conn.asFault(ctx, fn(ctx, tx))
	}
	c, err := d.open(ctx)
	if err != nil {
		return err
	}
	if err := c.locks.usable(); err != nil {
		return err
	}
	over, err := d.readers.begin(ctx, d.path())
	if err != nil {
		return err
	}
	defer over()
	tx, err := c.beginRead(ctx)
	if err != nil {
		return c.asFault(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	return c.asFault(ctx, fn(d.holding(ctx, tx), tx))
}

// query reads with one query, and calls scan for each row.
func (d *database) query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return d.read(ctx, func(ctx context.Context, tx *sql.Tx) error { return queryRows(ctx, tx, scan, query, args...) })
}

// first reads the first row of a query into dest; found is false if there is none.
func (d *database) first(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	err = d.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
	return d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

// acquireLock takes a new lock and returns its name.
func (d *database) acquireLock(ctx context.Context) (string, error) {
	c, err := d.open(ctx)
	if err != nil {
		return "", err
	}
	name, err := c.locks.acquire(ctx)
	return name, c.asFault(ctx, err)
}

func (d *database) releaseLock(name string) {
	if c, err := d.open(context.Background()); err == nil { // a store that is closed holds no lock any more
		c.locks.release(name)
	}
}

// endedLocks reports which of the locks are not held any more.
func (d *database) endedLocks(ctx context.Context, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	c, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	ended, err := c.locks.ended(ctx, names)
	return ended, c.asFault(ctx, err)
}
