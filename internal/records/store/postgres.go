package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// What only PostgreSQL knows is in the files whose names begin with postgres, in locks_postgres.go and
// migrations/postgres.

const (
	postgresReaders = 2               // connections for reading, unless Options say otherwise
	postgresIdle    = 1 * time.Minute // an unused connection is closed after that
)

// writeLock takes the lock that makes one transaction at a time write to our tables, until it ends. It is an advisory
// lock on the audit table of this schema, so it does not disturb readers, backups and vacuum. A transaction that waited
// for it sees what the one before has committed, since each statement has its own view (READ COMMITTED). So there are
// no serialization failures to repeat, and no deadlocks.
const writeLock = `SELECT pg_advisory_xact_lock($1, 'audit'::regclass::oid::int4)`

// postgresEngine is an open PostgreSQL database.
type postgresEngine struct {
	config  *pgx.ConnConfig
	patient *pgx.ConnConfig // without a bound on how long a statement takes
	newest  int64           // number of the last migration that this program knows
	busy    time.Duration   // for how long a statement waits for a lock
	writer  *sql.DB         // one connection: writers of this process wait for it here, and not in the server
	reader  *sql.DB

	migrations fs.FS
}

func openPostgres(ctx context.Context, opts Options) (*postgresEngine, error) {
	config, err := parseURL(opts.DatabaseURL, opts.BusyTimeout)
	if err != nil {
		return nil, err
	}
	if config.RuntimeParams[applicationName] == defaultApplication {
		config.RuntimeParams[applicationName] = applicationOf(opts.Process)
	}
	setAfterConnect(config)
	patient := config.Copy()
	boundSilence(config, opts.Silence)
	newest, err := newestVersion(opts.migrations, postgresMigrations)
	if err != nil {
		return nil, err
	}
	e := &postgresEngine{config: config, patient: patient, newest: newest, busy: opts.BusyTimeout,
		writer: openPostgresPool(config, 1), reader: openPostgresPool(config, opts.Readers), migrations: opts.migrations}
	if err := e.prepare(ctx, opts.MustExist); err != nil {
		_ = e.close()
		return nil, e.asFault(ctx, err)
	}
	return e, nil
}

// openPostgresPool returns a pool of connections; none is made yet.
func openPostgresPool(config *pgx.ConnConfig, size int) *sql.DB {
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(postgresIdle)
	return db
}

func (e *postgresEngine) name() string { return nameOf(e.config) }

func (e *postgresEngine) close() error { return errors.Join(e.reader.Close(), e.writer.Close()) }

func (e *postgresEngine) beginWrite(ctx, waiting context.Context) (*sql.Tx, error) {
	tx, err := e.writer.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, e.silence(ctx, err)
	}
	if err := e.takeWriteLock(ctx, waiting, tx); err != nil {
		return nil, errors.Join(e.silence(ctx, err), ignoreDone(tx.Rollback()))
	}
	return tx, nil
}

// takeWriteLock waits for the lock until waiting ends. The server gives up by itself: of a client that has gone, it
// would wait on, and have the lock for a moment. Once it is taken, no newer program changes the tables until the
// transaction ends; if one has, this one must not write.
func (e *postgresEngine) takeWriteLock(ctx, waiting context.Context, tx *sql.Tx) error {
	const grace = 2 * time.Second
	left := e.busy
	if deadline, has := waiting.Deadline(); has {
		left = min(left, max(time.Until(deadline), time.Millisecond))
	}
	bounded, cancel := context.WithTimeout(ctx, left+grace)
	defer cancel()
	// One message, of which each statement has its own view. It divides by zero if the tables are newer.
	_, err := tx.ExecContext(bounded, fmt.Sprintf(`SELECT set_config('lock_timeout', '%d', true);
		SELECT pg_advisory_xact_lock(%d, 'audit'::regclass::oid::int4);
		SELECT 1 / (SELECT CASE WHEN MAX(version_id) <= %d THEN 1 ELSE 0 END FROM %s WHERE is_applied)`,
		left.Milliseconds()+1, applicationID, e.newest, versionTable))
	if sqlState(err) == stateDivisionByZero {
		return fault.Wrap(err, fault.Misconfigured, "a newer claudeops has brought the records in the PostgreSQL database %s "+
			"up to date; run that version", e.name())
	}
	return err
}

// silence makes a fault of the error of a server that did not answer: that is not the fault of another writer.
func (e *postgresEngine) silence(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) {
		return e.asFault(ctx, err)
	}
	return err
}

func (e *postgresEngine) beginRead(ctx context.Context) (*sql.Tx, error) {
	return e.reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// ignoreDone drops the error of a rollback that the end of the context has made already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// check has nothing to say about damaged files: PostgreSQL reports them when it reads them (data checksums).
func (e *postgresEngine) check(ctx context.Context) error {
	const query = `SELECT COUNT(*) FROM pg_trigger WHERE tgrelid = 'audit'::regclass AND tgenabled = 'A'
		AND tgname IN ('audit_insert_extends_chain', 'audit_refuses_changes')`
	var guards int
	if err := e.reader.QueryRowContext(ctx, query).Scan(&guards); err != nil {
		return err
	}
	if guards != 2 {
		return guardsMissing(e.name())
	}
	return nil
}

func (e *postgresEngine) size(ctx context.Context) (bytes int64, err error) {
	const query = `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::BIGINT FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'audit'::regclass)`
	err = e.reader.QueryRowContext(ctx, query).Scan(&bytes)
	return bytes, err
}

// prepare makes the tables or brings them up to date if need be, alone among all processes.
func (e *postgresEngine) prepare(ctx context.Context, mustExist bool) error {
	version, err := e.version(ctx)
	switch {
	case err != nil:
		return err
	case version == e.newest:
		return nil
	case version > e.newest:
		return e.newer(version)
	case version == 0 && mustExist:
		return fault.New(fault.NotFound, "there are no tables of claudeops in the PostgreSQL database %s yet", e.name())
	}
	return e.migrate(ctx)
}

func (e *postgresEngine) newer(version int64) error {
	return fault.New(fault.Misconfigured, "the PostgreSQL database %s was written by a newer claudeops "+
		"(schema %d, this one knows %d); run that version, or name another database with CLAUDEOPS_DATABASE_URL",
		e.name(), version, e.newest)
}
