package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// versionTable has the migrations that were applied. Its name is ours alone: another program in the same schema may use
// goose, too.
const versionTable = "claudeops_versions"

// migrateLockWait limits how long a process waits for another one that prepares the database.
const migrateLockWait = "60s"

// version returns the number of the last migration; 0 if there are no tables of ours. It refuses a database that cannot
// hold all text.
func (e *postgresEngine) version(ctx context.Context) (version int64, err error) {
	var encoding string
	var schema sql.NullString
	if err := e.reader.QueryRowContext(ctx, `SELECT current_setting('server_encoding'), current_schema()`).Scan(&encoding,
		&schema); err != nil {
		return 0, err
	}
	if !schema.Valid { // what looks for tables would look in all of them
		return 0, &pgconn.PgError{Code: stateNoSchema, Message: "none of search_path is there"}
	}
	if encoding != "UTF8" {
		return 0, fault.New(fault.Misconfigured,
			"the PostgreSQL database %s has the encoding %s, which cannot hold all text; "+
				"create one with the encoding UTF8", e.name(), encoding)
	}
	const query = `SELECT COALESCE(MAX(version_id), 0) FROM ` + versionTable + ` WHERE is_applied`
	err = e.reader.QueryRowContext(ctx, query).Scan(&version)
	if sqlState(err) == stateUndefinedTable {
		return 0, nil
	}
	return version, err
}

// migrate applies what is missing, each migration in a transaction of its own.
func (e *postgresEngine) migrate(ctx context.Context) (err error) {
	db := stdlib.OpenDB(*e.patient) // a pool of its own: one connection holds the lock while goose uses others
	defer func() { err = errors.Join(err, db.Close()) }()
	lock, err := takeMigrationLock(ctx, db)
	if err != nil {
		return err
	}
	// Closing the pool ends the session, and with it the locks.
	defer func() { err = errors.Join(err, lock.conn.Close()) }()
	sub, err := fs.Sub(e.migrations, postgresMigrations)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, sub, goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if current > e.newest {
		return e.newer(current)
	}
	if current > 0 && current < e.newest {
		if err := e.mayMigrate(ctx, db); err != nil {
			return err
		}
		// One that was cut off, and so was not seen, writes before this or finds out.
		if err := lock.keepWritersOut(ctx); err != nil {
			return err
		}
	}
	_, err = provider.Up(ctx)
	return err
}

// checkVersion returns the fault of tables that are newer than this program.
func (e *postgresEngine) checkVersion(ctx context.Context, conn *pgx.Conn) error {
	var version int64
	err := conn.QueryRow(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+versionTable+` WHERE is_applied`).Scan(&version)
	if err == nil && version > e.newest {
		err = e.newer(version)
	}
	return err
}

// migrationLock is held by one process at a time in a database to prepare it, whatever the schema.
type migrationLock struct{ conn *sql.Conn }

func takeMigrationLock(ctx context.Context, db *sql.DB) (*migrationLock, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.ExecContext(ctx, `SELECT set_config('lock_timeout', $1, false)`, migrateLockWait)
	if err == nil {
		_, err = conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(applicationID))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &migrationLock{conn}, nil
}

// keepWritersOut takes the lock of writers too; see writeLock.
func (l *migrationLock) keepWritersOut(ctx context.Context) error {
	_, err := l.conn.ExecContext(ctx, `SELECT pg_advisory_lock($1, 'audit'::regclass::oid::int4)`, applicationID)
	return err
}
