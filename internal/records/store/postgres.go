package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

func (e *postgresEngine) readContext(ctx context.Context) context.Context { return ctx }

// ignoreDone drops the error of a rollback that the end of the context has made already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// checkStructure finds nothing: PostgreSQL reports damaged files when it reads them (data checksums).
func (e *postgresEngine) checkStructure(context.Context) (string, error) { return "", nil }

func (e *postgresEngine) checkGuards(ctx context.Context) error {
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
	version, err := e.schemaVersion(ctx)
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

// Settings that a connection starts with, since poolers know them. All others are set once it is there: a pooler
// refuses a start with a setting that it does not know.
func startSettings() []string { return []string{applicationName, "client_encoding", "options"} }

// setAfterConnect has connections made with the start's settings alone, and the others set at once.
func setAfterConnect(config *pgx.ConnConfig) {
	settings := maps.Clone(config.RuntimeParams)
	maps.DeleteFunc(settings, func(name, _ string) bool { return slices.Contains(startSettings(), name) })
	for name := range settings {
		delete(config.RuntimeParams, name)
	}
	names := slices.Sorted(maps.Keys(settings))
	var calls []string
	var arguments [][]byte
	for _, name := range names {
		calls = append(calls, "set_config("+placeholders(len(arguments)+1, len(arguments)+2)+", false)")
		arguments = append(arguments, []byte(name), []byte(settings[name]))
	}
	if len(calls) == 0 {
		return
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.ExecParams(ctx, "SELECT "+strings.Join(calls, ", "), arguments, nil, nil, nil).Read().Err
	}
}

// boundSilence ends a connection whose server, or what is on the way to it, takes or sends nothing for longer than
// limit while a statement waits.
func boundSilence(config *pgx.ConnConfig, limit time.Duration) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, limit: limit}, nil
	}
}

// boundedConn fails a read or write that waits for longer than limit, with os.ErrDeadlineExceeded, or until the
// deadline that was set if that is earlier.
type boundedConn struct {
	net.Conn
	limit time.Duration

	mu  sync.Mutex
	set time.Time // the deadline of the caller; zero for none
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if err := c.arm(nil); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *boundedConn) Write(b []byte) (int, error) {
	if err := c.arm(nil); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn. It also ends a read or write that has begun.
func (c *boundedConn) SetDeadline(t time.Time) error { return c.arm(&t) }

// arm sets the deadline of the connection; set, if not nil, is the caller's from now on.
func (c *boundedConn) arm(set *time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set != nil {
		c.set = *set
	}
	deadline := time.Now().Add(c.limit)
	if !c.set.IsZero() && c.set.Before(deadline) {
		deadline = c.set
	}
	return c.Conn.SetDeadline(deadline)
}

// serverClock tells the time of the server, by how much has passed since it was asked. The host's clock, which may be
// wrong or be set meanwhile, has no part in it.
type serverClock struct {
	mu     sync.Mutex
	server time.Time // what the server said; zero before that
	local  time.Time // when it did
}

// syncClock asks the server.
func (c *serverClock) syncClock(ctx context.Context, conn *pgx.Conn) error {
	const half = 2
	var server time.Time
	sent := time.Now()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.local = server.UTC(), sent.Add(time.Since(sent)/half)
	return nil
}

// now returns the time of the server; known is false if it was not asked yet.
func (c *serverClock) now() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.local)), !c.server.IsZero()
}

const connectTimeout = 10 * time.Second // unless the URL says otherwise (connect_timeout)

// parseURL reads a postgres URL. What it leaves out comes from the environment variables and files that libpq knows
// (PGHOST, ~/.pgpass, ...). No error shows the URL: a part that was not escaped may be the password.
func parseURL(text string, busy time.Duration) (*pgx.ConnConfig, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fault.New(fault.Misconfigured, "CLAUDEOPS_DATABASE_URL is not a PostgreSQL URL; "+
			"give postgres://user:password@host:5432/database, special characters written as %%XX")
	}
	if strings.Contains(u.EscapedPath()+u.RawQuery, "@") || u.Fragment != "" {
		return nil, fault.New(fault.Misconfigured, "CLAUDEOPS_DATABASE_URL has special characters in its user or password; "+
			"write each of them as %%XX (/ as %%2F, @ as %%40, # as %%23, ? as %%3F)")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, fault.Wrap(withoutSecrets(err, u), fault.Misconfigured,
			"CLAUDEOPS_DATABASE_URL cannot be used; check its port, its options and the files that it names")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	for name, value := range sessionSettings(busy) {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	return config, nil
}

// sessionSettings returns the server's settings for each of our connections, unless the URL says otherwise. A machine
// that vanishes must not hold locks for long: the keepalives end its sessions after a minute.
func sessionSettings(busy time.Duration) map[string]string {
	return map[string]string{
		applicationName:                       defaultApplication,
		"lock_timeout":                        strconv.FormatInt(max(busy.Milliseconds(), 1), 10),
		"idle_in_transaction_session_timeout": "120s",
		"synchronous_commit":                  "on",
		"tcp_keepalives_idle":                 "30",
		"tcp_keepalives_interval":             "10",
		"tcp_keepalives_count":                "3",
	}
}

// withoutSecrets returns the reason why the URL u was refused, without the URL; nil if a secret of it is in there
// still.
func withoutSecrets(err error, u *url.URL) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	query := u.Query()
	password, _ := u.User.Password()
	for _, secret := range []string{password, query.Get("password"), query.Get("sslpassword")} {
		if secret != "" && strings.Contains(err.Error(), secret) {
			return nil
		}
	}
	return err
}

// nameOf says which database a connection is to, without its user: host:port/database.
func nameOf(config *pgx.ConnConfig) string {
	host := func(name string, port uint16) string { return net.JoinHostPort(name, strconv.Itoa(int(port))) }
	hosts := []string{host(config.Host, config.Port)}
	for _, f := range config.Fallbacks {
		if h := host(f.Host, f.Port); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return strings.Join(hosts, ",") + "/" + config.Database
}
