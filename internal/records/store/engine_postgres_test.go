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

	"github.com/claudeops/claudeops/internal/testkit/must"
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
	db := stdlib.OpenDB(*must.Get(pgx.ParseConfig(text))(t))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// emptyDatabase is the name of a database that holds the tables and no records. It is made once: the server copies it
// in less time than it makes the tables anew.
var emptyDatabase struct {
	once sync.Once
	name string
	made string // the answer of madeOf
	err  error
}

// emptyPlaces are databases that were used and are as they were made.
var emptyPlaces struct {
	sync.Mutex
	names []string
}

// emptyPlace is where a store has been made already, which is empty: one that a test has left, or a copy of
// emptyDatabase. The test leaves it to others if it has changed rows alone.
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
		made := connect(t, ofDatabase(t, emptyDatabase.name))
		emptyDatabase.made = madeOf(made)
		_ = made.Close() // nobody may be connected to what is copied
	})
	if emptyDatabase.err != nil {
		t.Fatal(emptyDatabase.err)
	}
	name, left := leftPlace()
	if !left {
		name = "t_" + strings.ToLower(rand.Text())
		mustExec(t, admin, "CREATE DATABASE "+name+" TEMPLATE "+emptyDatabase.name+" STRATEGY FILE_COPY")
	}
	t.Cleanup(func() {
		if !t.Failed() && emptied(t, admin, name) {
			emptyPlaces.Lock()
			defer emptyPlaces.Unlock()
			emptyPlaces.names = append(emptyPlaces.names, name)
			return
		}
		if _, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return ofDatabase(t, name)
}

// leftPlace takes a database that another test has left, if there is one.
func leftPlace() (name string, left bool) {
	emptyPlaces.Lock()
	defer emptyPlaces.Unlock()
	n := len(emptyPlaces.names)
	if n == 0 {
		return "", false
	}
	name, emptyPlaces.names = emptyPlaces.names[n-1], emptyPlaces.names[:n-1]
	return name, true
}

// madeOf says what a database is made of, and which settings it has: all but the rows of our tables.
func madeOf(db *sql.DB) (made string) {
	const query = `SELECT md5(concat(
		(SELECT string_agg(c::text, ';' ORDER BY oid) FROM (SELECT oid, relname, relkind, relpersistence, relrowsecurity,
			relhasrules, relhastriggers, reloptions, relacl FROM pg_class WHERE oid >= 16384 AND relkind <> 't' AND
			relnamespace <> 'pg_toast'::regnamespace) c),
		(SELECT string_agg(a::text, ';' ORDER BY attrelid, attnum) FROM (SELECT attrelid, attnum, attname, atttypid,
			attnotnull, attgenerated, attisdropped, attcollation FROM pg_attribute WHERE attrelid >= 16384 AND attnum > 0
			AND attrelid NOT IN (SELECT oid FROM pg_class WHERE relnamespace = 'pg_toast'::regnamespace)) a),
		(SELECT string_agg(d::text, ';' ORDER BY oid) FROM (SELECT oid, tgrelid, tgname, tgenabled, tgfoid
			FROM pg_trigger WHERE NOT tgisinternal) d),
		(SELECT string_agg(o::text, ';' ORDER BY oid) FROM (SELECT oid, conrelid, conname, contype, conkey, confrelid,
			confkey, conbin FROM pg_constraint WHERE oid >= 16384) o),
		(SELECT string_agg(p::text, ';' ORDER BY oid) FROM (SELECT oid, proname, prosrc FROM pg_proc WHERE oid >= 16384) p),
		(SELECT string_agg(n::text, ';' ORDER BY oid) FROM (SELECT oid, nspname, nspacl FROM pg_namespace) n),
		(SELECT string_agg(s::text, ';') FROM (SELECT setconfig FROM pg_db_role_setting JOIN pg_database d ON d.oid =
			setdatabase WHERE datname = current_database()) s),
		(SELECT string_agg(v::text, ';' ORDER BY v::text) FROM (SELECT version_id, is_applied FROM ` + versionTable + `) v),
		(SELECT COUNT(*) FROM pg_statistic WHERE starelid >= 16384)))`
	if err := db.QueryRow(query).Scan(&made); err != nil {
		return err.Error()
	}
	return made
}

// emptied removes what a test has recorded, and reports whether the database is then as it was made.
func emptied(t testing.TB, admin *sql.DB, name string) bool {
	t.Helper()
	const left = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = $1" // waits for their end
	if _, err := admin.Exec(left, name); err != nil {
		return false
	}
	db := connect(t, ofDatabase(t, name))
	defer db.Close()
	if madeOf(db) != emptyDatabase.made {
		return false
	}
	// The server removes a few rows in less time than it makes the files of a table anew. No trigger follows a deletion.
	_, err := db.Exec(`DO $$ DECLARE one record; large text[]; BEGIN
		ALTER TABLE audit DISABLE TRIGGER audit_refuses_changes;
		SET LOCAL session_replication_role = replica;
		FOR one IN SELECT oid::regclass::text AS name, pg_relation_size(oid) AS size FROM pg_class WHERE relkind = 'r' AND
			oid >= 16384 AND relname <> '` + versionTable + `' AND pg_relation_size(oid) > 0 LOOP -- others never had a row
			IF one.size > 65536 THEN large := large || one.name; ELSE EXECUTE format('DELETE FROM %s', one.name); END IF;
		END LOOP;
		IF large IS NOT NULL THEN EXECUTE format('TRUNCATE %s CASCADE', array_to_string(large, ', ')); END IF;
		FOR one IN SELECT format('%I.%I', schemaname, sequencename) AS name FROM pg_sequences
			WHERE last_value IS NOT NULL AND sequencename NOT LIKE '` + versionTable + `%' LOOP
			EXECUTE format('ALTER SEQUENCE %s RESTART', one.name);
		END LOOP;
		ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_refuses_changes;
	END $$`)
	return err == nil
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
	tx := must.Get(raw(t, s).Begin())(t)
	must.Get(tx.Exec(writeLock, applicationID))(t)
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
	must.Do(t, rawPlace(t, place).QueryRow("SELECT MAX(version_id) FROM "+versionTable).Scan(&version))
	return version
}

// freePages is 0: PostgreSQL uses its room again by itself.
func freePages(testing.TB, *Store) int { return 0 }
