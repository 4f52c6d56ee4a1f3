// Package store stores the state of Claude Ops: proposals and the reservations of their paths, the outbox of notices,
// the pull requests of the local provider, tokens and logins, the sessions of agents, and the audit. It is one SQLite
// file, or tables in a PostgreSQL database. Every change is one transaction that is on disk before the call returns,
// and one process at a time makes one. Each kind of record has a type of its own, a field of Store; they share a
// database.
//
// # SQLite
//
// Several processes may use one folder at the same time (WAL, synchronous=FULL, immediate transactions). They must run
// on one machine: SQLite's WAL needs shared memory, so the folder must not be on a network file system that several
// machines use.
//
// # PostgreSQL
//
// PostgreSQL 14 or newer, for several machines. The URL is one of libpq: postgres://user@host:5432/database, with
// sslmode, search_path, target_session_attrs and so on. The encoding of the database must be UTF8. The connection must
// be to the server itself, or to a pooler that pools sessions: reservations have locks of a session (see locks). Each
// process holds at most four connections, one of them for as long as it lives once it has proposed something.
//
// Tables are made in the first schema of the search_path that exists, "public" unless the URL says otherwise. The first
// start, and the first one of a newer program, need a user that may CREATE there. After that a user that does not own
// the tables does, and then cannot drop the guards of the audit either. It needs, for a schema s:
//
//	GRANT USAGE ON SCHEMA s TO claudeops;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA s TO claudeops;
//	REVOKE UPDATE, DELETE ON s.audit FROM claudeops;
//	REVOKE INSERT, UPDATE, DELETE ON s.claudeops_versions FROM claudeops;
//
// # The audit
//
// The audit is append-only and a hash chain: each row carries the hash of the row before. The database refuses updates,
// deletes and rows that do not follow the last one. Anyone who can write the file, or owns the tables, can bypass that,
// so VerifyAudit recomputes the chain. To detect that rows were cut off its end, store a head elsewhere and pass it to
// VerifyAudit.
//
// The hash of a row is the lower-case hexadecimal SHA-256 of this text:
//
//	claudeops-audit-v1\n
//	<name>=<length>:<value>\n        for each column in the order below
//
// where length is the number of bytes of value in decimal, value is the column as stored (integers in decimal), and
// the columns are seq, prev_hash, time_us, request_id, door, caller, tier, action, provider, owner, repo, base, branch,
// title, paths, digest, verdicts, outcome, code, message, pr_number, pr_url, duration_us, actor, policy. Where one of
// the last two is empty, its line is left out. seq counts from 1 without
// gaps. prev_hash is the hash of the row before, for the first row 64 zeros. time_us and duration_us are microseconds,
// time_us since 1970-01-01 UTC. paths and verdicts are JSON arrays, actor is an object
// (record.Actor). testdata/audit-vector.txt is such a text.
//
// Text in the columns has every backslash doubled and every NUL and every byte that is not part of valid UTF-8 written
// as \xHH; inside JSON arrays this happens before the JSON escapes. Values beyond their bounds are cut and end in a
// mark with the length and the SHA-256 of the whole.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Options are how a store is opened. The zero value is fit for use.
type Options struct {
	// DatabaseURL, if not empty, is the PostgreSQL database that is used instead of a file in the state folder; see the
	// package documentation for what the URL and its user need. Errors name host and database, never the URL or its
	// password.
	DatabaseURL string
	// Kind is the configured kind of database, KindSQLite or KindPostgreSQL. "" means the last one of this state folder:
	// it does not change by itself.
	Kind string
	// Now is the clock for what the store dates and judges itself: when a pull request was recorded, whose turn a round
	// is, and records that come without a time. Default: the clock of the PostgreSQL server, with SQLite time.Now.
	Now func() time.Time
	// NewID makes the names of locks. No two processes may ever make the same. They become names of files.
	// Default: crypto/rand.Text.
	NewID func() string
	// Process says what this process is, for people who meet it in a message of another one.
	Process Process
	// BusyTimeout limits how long a call waits before it can write: for other calls of this process and for other
	// processes, all together. After such a timeout the next calls wait a second, until one could write again. Default: 15
	// seconds.
	BusyTimeout time.Duration
	// Readers limits the calls that read at a time, each on a connection of its own. Default: 4, with PostgreSQL 2.
	Readers int
	// Silence limits how long PostgreSQL may leave a statement without an answer; then its connection is given up. It has
	// to be longer than BusyTimeout. Default: 30 seconds, or twice BusyTimeout if that is more.
	Silence time.Duration
	// MakeParents also makes the folders above the state folder, as is right for a default place, not for one that
	// somebody typed.
	MakeParents bool
	// Appended, if not nil, is called after rows of the audit were added and are on disk. The call that added them waits
	// for it.
	Appended func(ctx context.Context)
	// Policy returns the hash of the policy that holds now, for rows of the audit and for proposals that come without one.
	// nil: they stay without.
	Policy func() string
	// SessionNotices, if not nil, are those that people are told of the end of a session of an agent, skipped ones
	// included. They are put into the outbox in the transaction that records the end.
	SessionNotices func(r sessions.Record) []record.Notice
	// LocalRoot returns the identity of the root of the local repositories of this process; "" while it has none. It is
	// asked until it has one. nil: this process has no local repositories. See pulls.go.
	LocalRoot func() string
	// MustExist refuses, with fault.NotFound, to make a new database: for commands that only look at one.
	MustExist bool
	// NoSync leaves writing to the system: what was recorded lasts through the end of this process, but not through a loss
	// of power. It is for tests. PostgreSQL ignores it.
	NoSync bool

	migrations fs.FS // default: those of this program; tests know a later version
}

const defaultBusyTimeout = 15 * time.Second

// pragmas returns the SQLite pragmas of an open database besides those of every pool.
func (o Options) pragmas() []string {
	if o.NoSync {
		return []string{"synchronous(OFF)"}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.migrations == nil {
		o.migrations = migrations
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	if o.Silence <= 0 {
		o.Silence = 2 * max(o.BusyTimeout, defaultBusyTimeout)
	}
	if o.Readers <= 0 {
		o.Readers = sqliteReaders
		if o.DatabaseURL != "" {
			o.Readers = postgresReaders
		}
	}
	return o
}

// Store is a database in parts, one for each kind of record; a consumer gets only the parts that it needs. It is safe
// for concurrent use, by several processes too. All methods of all parts return *fault.Error: internal with what the
// operator has to do, timeout when the context ended, what the method names, and the errors of opening the database.
//
// The first call that reads or writes opens the database, and makes folder (mode 0700), database (0600) and tables if
// they are missing; a database of an older program is brought up to date. A folder that cannot be used, a server that
// refuses us, and a database that is not ours or of a newer program are misconfigured, a damaged one is internal; it is
// left as it is. The next call tries again.
type Store struct {
	db *database

	Ledger        *Ledger        // reservations, proposals as they proceed, and what is appended to the audit
	History       *History       // what was proposed, and the results
	Audit         *Audit         // the chain of rows that proves it
	Pulls         *Pulls         // what was last seen of our pull requests
	LocalPulls    *LocalPulls    // the pull requests of the local provider
	Outbox        *Outbox        // notices that wait
	JobClaims     *JobClaims     // whose turn periodic work is, and which webhooks were taken
	Replies       *Replies       // answers under idempotency keys
	Access        *Access        // tokens, and logins of browsers
	AgentSessions *AgentSessions // the sessions of agents
	Retention     *Retention     // removal of what is old
}

// New returns a store of the state folder dir. It touches neither disk nor network.
func New(dir string, opts Options) *Store {
	d := newDatabase(dir, opts)
	return &Store{
		db: d, Ledger: &Ledger{d, newHeldLocks(d), &repeats{now: d.now, kinds: map[refusalKind]*repeated{}}},
		History: &History{d}, Audit: &Audit{d}, Pulls: &Pulls{d},
		LocalPulls: &LocalPulls{d},
		Outbox:     &Outbox{d}, JobClaims: &JobClaims{d}, Replies: &Replies{d}, Access: &Access{d},
		AgentSessions: &AgentSessions{d, newHeldLocks(d)}, Retention: &Retention{d},
	}
}

// Open is New, with the database opened already: for tests.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	s := New(dir, opts)
	if _, err := s.db.ensureConnected(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Path returns the location of the database, for people: its file, or host, port and name on PostgreSQL.
func (s *Store) Path() string { return s.db.path() }

// PullPaths returns the memory of a provider.
func (s *Store) PullPaths(provider string) *PullPaths { return &PullPaths{s.db, provider} }

// Connections returns the agents that are connected now.
func (s *Store) Connections() *Connections { return &Connections{s.db, s.db.connected} }

// Changes tells whether anything was recorded.
func (s *Store) Changes() *Changes { return &Changes{s.db} }

// Close ends the use of the store, opened or not. Counts of refusals are recorded first: a server still answers after
// KeepRepeats has ended. Proposals that it reserved and did not finish count as abandoned from then on. Other calls
// fail after it; further calls of Close do nothing.
func (s *Store) Close() error {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.Ledger.FlushRepeats(ctx, true) // each refusal is in the log of the server
	return s.db.close()
}

// Now returns the time by which the records are dated and judged, Options.Now; the host's until the database is open.
func (s *Store) Now() time.Time { return s.db.now() }

// ClockSkew returns how far the clock of the PostgreSQL server is ahead of the host's; known is false with SQLite, and
// until the database is open.
func (s *Store) ClockSkew() (ahead time.Duration, known bool) {
	now, known := s.db.server.now()
	if !known {
		return 0, false
	}
	return time.Until(now), true
}

// Size is how many bytes the records take, the room in the database that is free to be used again included.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	c, err := s.db.ensureConnected(ctx)
	if err != nil {
		return 0, err
	}
	bytes, err = c.size(ctx)
	return bytes, c.asFault(ctx, err)
}

// Ping reports whether the database can be read. It is cheap.
func (s *Store) Ping(ctx context.Context) error {
	return s.db.readTx(ctx, func(context.Context, *sql.Tx) error { return nil })
}

// Check reports whether the database can be read and written, and whether the audit is protected. It is cheap;
// Audit.Verify finds out whether the structure of the database is sound.
func (s *Store) Check(ctx context.Context) error {
	if err := s.db.writeTx(ctx, func(context.Context, *sql.Tx) error { return nil }); err != nil {
		return err
	}
	c, err := s.db.ensureConnected(ctx)
	if err != nil {
		return err
	}
	over, err := s.db.readers.acquireReader(ctx, s.db.path())
	if err != nil {
		return err
	}
	defer over()
	return c.asFault(ctx, c.checkGuards(ctx))
}

// guardsMissing returns the fault that check returns when the audit is not protected any more.
func guardsMissing(database string) error {
	return fault.New(fault.Internal, "somebody removed the triggers that protect the audit in %s; "+
		"run `claudeops audit verify` and restore a backup", database)
}

// Changes tells whether anything has been recorded, and holds it still.
type Changes struct{ db *database }

// Version returns a text that changes whenever something was recorded, by whatever process. known is false where that
// is not known without reading: with PostgreSQL, or while the database cannot be read.
func (c *Changes) Version(ctx context.Context) (version string, known bool) {
	conn, err := c.db.ensureConnected(ctx)
	if err != nil {
		return "", false
	}
	e, ok := conn.engine.(*sqliteEngine)
	if !ok {
		return "", false
	}
	return e.changes.changeVersion(ctx, e)
}

// View runs fn with a context in which all parts of the store read the same view of the records: what fn makes of them
// belongs together, and costs one transaction. Its reads follow one another; what it writes it does not read.
func (c *Changes) View(ctx context.Context, fn func(context.Context) error) error {
	return c.db.withSnapshot(ctx, fn)
}

// changeCounter asks SQLite on a connection of its own whether others have committed, which costs a look at memory that
// the processes share. The number counts for this connection only, so that generation tells connections apart.
type changeCounter struct {
	mu         sync.Mutex
	pool       *sql.DB
	statement  *sql.Stmt // nil before the first question, and after a failure
	conn       *sql.Conn
	generation int
}

func (c *changeCounter) changeVersion(ctx context.Context, e *sqliteEngine) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.checkNotReplaced() != nil {
		return "", false
	}
	if c.statement == nil && c.connect(ctx, e) != nil {
		return "", false
	}
	var number int64
	if err := c.statement.QueryRowContext(ctx).Scan(&number); err != nil {
		c.disconnect()
		return "", false
	}
	return fmt.Sprintf("%d:%d", c.generation, number), true
}

func (c *changeCounter) connect(ctx context.Context, e *sqliteEngine) (err error) {
	if c.pool == nil {
		if c.pool, err = openPool(e.path, busySlice, false); err != nil {
			return err
		}
	}
	if c.conn, err = c.pool.Conn(ctx); err != nil {
		return err
	}
	c.generation++
	if c.statement, err = c.conn.PrepareContext(ctx, "PRAGMA data_version"); err != nil {
		c.disconnect()
	}
	return err
}

// disconnect gives the connection up. The next question makes a new one.
func (c *changeCounter) disconnect() {
	if c.statement != nil {
		_ = c.statement.Close() // its connection is given up
	}
	if c.conn != nil {
		_ = c.conn.Close() // likewise
	}
	c.statement, c.conn = nil, nil
	if c.pool != nil {
		_ = c.pool.Close()
	}
	c.pool = nil
}

func (c *changeCounter) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnect()
}
