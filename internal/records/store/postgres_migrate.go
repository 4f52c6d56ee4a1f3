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

// schemaVersion returns the number of the last migration; 0 if there are no tables of ours. It refuses a database that
// cannot hold all text.
func (e *postgresEngine) schemaVersion(ctx context.Context) (version int64, err error) {
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
	if first := provider.ListSources()[0].Version; current > 0 && current < first {
		return unreleased("PostgreSQL database "+e.name(), current, first, "database with CLAUDEOPS_DATABASE_URL")
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

// How sessions are called in pg_stat_activity. One of an earlier version has the bare name.
const (
	applicationName    = "application_name"
	defaultApplication = "claudeops"
	maxApplication     = 63 // bytes that the server keeps
)

// applicationOf returns a name such as "claudeops 0.1.0 serve, process 4711 on atlas".
func applicationOf(p Process) string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	name := fmt.Sprintf("%s, process %d on %s", p, os.Getpid(), host)
	return name[:min(len(name), maxApplication)]
}

// presenceLock is shared by all sessions that use the tables of this schema, for as long as they do.
const presenceLock = `SELECT pg_advisory_lock_shared($1, '` + versionTable + `'::regclass::oid::int4)`

// presenceID tells that lock from those of writers.
const presenceID = applicationID + 1

// userQuery names the sessions that use the tables of this schema, and those of earlier versions in this database,
// which do not say which schema they use.
const userQuery = `SELECT DISTINCT a.pid, a.application_name, COALESCE(host(a.client_addr), '')
	FROM pg_stat_activity a LEFT JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'advisory' AND l.granted
		AND l.classid::int8 = $1 AND l.objid = '` + versionTable + `'::regclass::oid AND l.objsubid = 2
	WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND (l.pid IS NOT NULL OR a.application_name = $2) ORDER BY a.pid`

// holderQuery names the session that keeps others from writing: it has the lock of writers, or one on a table that
// every writer changes.
const holderQuery = `SELECT a.pid, a.application_name, COALESCE(host(a.client_addr), ''), COALESCE(EXTRACT(EPOCH FROM a.xact_start), 0)
	FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.granted AND a.datname = current_database() AND (l.locktype = 'advisory' AND l.classid::int8 = $1 AND l.objid = 'audit'::regclass::oid AND l.objsubid = 2
		OR l.locktype = 'relation' AND l.relation = 'audit'::regclass AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
	ORDER BY a.xact_start LIMIT 1`

// sessionText returns a session of the server, for people.
func sessionText(pid int, application, client string) string {
	if application == "" {
		application = "a program without a name"
	}
	if client != "" {
		client = " from " + client
	}
	return fmt.Sprintf("session %d of the server (%s%s)", pid, application, client)
}

func (e *postgresEngine) holder(ctx context.Context) (who string, since time.Time, err error) {
	var pid int
	var application, client string
	var began float64
	err = e.reader.QueryRowContext(ctx, holderQuery, applicationID).Scan(&pid, &application, &client, &began)
	if errors.Is(err, sql.ErrNoRows) {
		return "a call on the PostgreSQL database " + e.name() + " that has ended meanwhile", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, e.asFault(ctx, err)
	}
	since = time.UnixMicro(int64(began * float64(time.Second/time.Microsecond)))
	return sessionText(pid, application, client), since, nil
}

// writing does nothing: the server knows which sessions write.
func (e *postgresEngine) writing() (done func()) { return func() {} }

// mayMigrate is stateFolder.mayMigrate for a database.
func (e *postgresEngine) mayMigrate(ctx context.Context, db *sql.DB) error {
	const patience, pause = 3 * time.Second, 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		others, err := e.users(ctx, db)
		switch {
		case err != nil:
			return err
		case len(others) == 0:
			return nil
		case waited >= patience:
			return olderUsers("PostgreSQL database "+e.name(), others)
		}
		select {
		case <-ctx.Done():
			return fault.From(ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (e *postgresEngine) users(ctx context.Context, db *sql.DB) (others []string, err error) {
	rows, err := db.QueryContext(ctx, userQuery, presenceID, defaultApplication)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var pid int
		var application, client string
		if err := rows.Scan(&pid, &application, &client); err != nil {
			return nil, err
		}
		others = append(others, sessionText(pid, application, client))
	}
	return others, rows.Err()
}
