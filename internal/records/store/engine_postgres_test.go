//go:build postgres

package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// testDatabase names the variable with the URL of a PostgreSQL server for tests, as an administrator.
const testDatabase = "CLAUDEOPS_TEST_POSTGRES"

const blobType = "BYTEA"

// enginePrepared says why the engine cannot be tested here, if so.
func enginePrepared() error {
	if os.Getenv(testDatabase) == "" {
		return errors.New(testDatabase + " must be the URL of a PostgreSQL server for tests, as an administrator; " +
			"e2e/postgres.sh starts one and runs a command with it")
	}
	return nil
}

// newPlace is where a store can be made: here an empty schema.
func newPlace(t testing.TB) string {
	t.Helper()
	schema := "t_" + strings.ToLower(rand.Text())
	admin := connect(t, os.Getenv(testDatabase))
	mustExec(t, admin, "CREATE SCHEMA "+schema)
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			t.Error(err)
		}
	})
	return withParameter(t, os.Getenv(testDatabase), "search_path", schema)
}

// withParameter is the URL with the parameter.
func withParameter(t testing.TB, text, name, value string) string {
	t.Helper()
	return changed(t, text, func(u *url.URL) {
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
	})
}

func changed(t testing.TB, text string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal("the URL cannot be parsed")
	}
	change(u)
	return u.String()
}

// connect is one connection that has nothing to do with ours, as another program would make one.
func connect(t testing.TB, text string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// emptyDatabase is the name of a database that holds the tables and no records. It is made once: the server copies it
// in less time than it makes the tables anew.
var emptyDatabase struct {
	once sync.Once
	name string
	err  error
}

// emptyPlace is where a store has been made already, which is empty: a copy of emptyDatabase.
func emptyPlace(t testing.TB) string {
	t.Helper()
	admin := connect(t, os.Getenv(testDatabase))
	emptyDatabase.once.Do(func() {
		emptyDatabase.name = "empty_" + strings.ToLower(rand.Text())
		mustExec(t, admin, "CREATE DATABASE "+emptyDatabase.name)
		var s *Store
		s, emptyDatabase.err = openPlace(t.Context(), ofDatabase(t, emptyDatabase.name), Options{})
		if emptyDatabase.err == nil {
			emptyDatabase.err = s.Close()
		}
	})
	if emptyDatabase.err != nil {
		t.Fatal(emptyDatabase.err)
	}
	name := "t_" + strings.ToLower(rand.Text())
	mustExec(t, admin, "CREATE DATABASE "+name+" TEMPLATE "+emptyDatabase.name)
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return ofDatabase(t, name)
}

// ofDatabase is the URL of a database of the server.
func ofDatabase(t testing.TB, name string) string {
	t.Helper()
	return changed(t, os.Getenv(testDatabase), func(u *url.URL) { u.Path = "/" + name })
}

func openPlace(ctx context.Context, place string, opts Options) (*Store, error) {
	opts.DatabaseURL = place
	return Open(ctx, "", opts)
}

func newAt(place string, opts Options) *Store {
	opts.DatabaseURL = place
	return New("", opts)
}

// rawPlace is a connection that has nothing to do with ours, as another program would make one.
func rawPlace(t testing.TB, place string) *sql.DB {
	t.Helper()
	return connect(t, place)
}

func raw(t testing.TB, s *Store) *sql.DB {
	t.Helper()
	return connect(t, s.db.conn.engine.(*postgresEngine).config.ConnString())
}

func readerOf(s *Store) *sql.DB { return s.db.conn.engine.(*postgresEngine).reader }

// holdWriteLock begins a transaction of another program that keeps ours from writing until release is called.
func holdWriteLock(t testing.TB, s *Store) (release func()) {
	t.Helper()
	tx, err := raw(t, s).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(writeLock, applicationID); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

func dropGuards() []string {
	return []string{"DROP TRIGGER audit_refuses_changes ON audit", "DROP TRIGGER audit_insert_extends_chain ON audit"}
}

// dropOneGuard removes a single guard of the audit.
func dropOneGuard() string { return "ALTER TABLE audit DISABLE TRIGGER audit_refuses_changes" }

// textNoMore puts into row 4 of the audit what our columns cannot hold.
func textNoMore() []string {
	return []string{"ALTER TABLE audit ALTER message DROP NOT NULL, ALTER paths TYPE BYTEA USING convert_to(paths, 'UTF8')",
		"UPDATE audit SET message = NULL, paths = '\\x00ff' WHERE seq = 4"}
}

// waitUntilEnded returns when the other processes can know that the process of that name has ended: when the server has
// noticed the end of its session.
func waitUntilEnded(t testing.TB, s *Store, name string) {
	t.Helper()
	mustExec(t, raw(t, s), fmt.Sprintf("SELECT pg_advisory_lock(%[1]d), pg_advisory_unlock(%[1]d)", lockKey(name)))
}

// waitUntilNoted does nothing: the server knows who writes.
func waitUntilNoted(*Store) {}

// analyze brings the statistics up to date that a database in use has.
func analyze(t testing.TB, s *Store) {
	t.Helper()
	mustExec(t, raw(t, s), "ANALYZE")
}

func runEngineChild(_ context.Context, part string, _ []string) error {
	return fmt.Errorf("unknown part %q", part)
}

func versionAt(t testing.TB, place string) (version int) {
	t.Helper()
	if err := rawPlace(t, place).QueryRow("SELECT MAX(version_id) FROM " + versionTable).Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// freePages is 0: PostgreSQL uses its room again by itself.
func freePages(testing.TB, *Store) int { return 0 }
