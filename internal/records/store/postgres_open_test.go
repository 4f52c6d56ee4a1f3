//go:build postgres

package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestOpenGivesUpOnWhatItCannotUse(t *testing.T) {
	t.Parallel()
	statements := func(statements ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			place := newPlace(t)
			if strings.Contains(statements[0], versionTable) {
				open(t, place, Options{})
			}
			mustExec(t, rawPlace(t, place), statements...)
			return place
		}
	}
	with := func(change func(*url.URL)) func(*testing.T) string {
		return func(t *testing.T) string { return changed(t, newPlace(t), change) }
	}
	parameter := func(name, value string) func(*testing.T) string {
		return func(t *testing.T) string { return withParameter(t, newPlace(t), name, value) }
	}
	for name, test := range map[string]struct {
		place   func(t *testing.T) string
		message string
	}{
		"another password": {with(func(u *url.URL) {
			u.User = url.UserPassword("claudeops_admin", "not-the-password")
		}), `refuses the user "claudeops_admin"; check user and password`},
		"an unknown user": {with(func(u *url.URL) {
			u.User = url.UserPassword("nobody-here", "not-the-password")
		}), `refuses the user "nobody-here"`},
		"no such database": {with(func(u *url.URL) { u.Path = "/not-there" }), "/not-there does not exist; create it"},
		"no such schema":   {parameter("search_path", "not_there"), "has no schema for our tables that the user"},
		"no TLS there": {parameter("sslmode", "require"),
			"cannot be reached; check that it runs, and host, port and TLS"},
		"a standby": {parameter("default_transaction_read_only", "on"), "takes no changes"},
		"another program's tables": {statements("CREATE TABLE audit (id INT)"),
			"has tables of another program in this schema; give claudeops a schema of its own"},
		"another program's function": {statements(
			"CREATE FUNCTION audit_refuses_changes() RETURNS trigger LANGUAGE plpgsql " +
				"AS 'BEGIN RETURN NULL; END'"), "has tables of another program in this schema"},
		"a newer program": {statements("INSERT INTO " + versionTable + " (version_id, is_applied) VALUES (99, true)"),
			"was written by a newer claudeops (schema 99"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openPlace(context.Background(), test.place(t), Options{})
			wantCode(t, err, fault.Misconfigured)
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("the message does not say %q: %v (%v)", test.message, err, errCause(err))
			}
			wantNoSecret(t, err, passwordOf(t), "not-the-password")
		})
	}
}

// wantNoSecret looks at everything that an error could show in an answer or a log.
func wantNoSecret(t testing.TB, err error, secrets ...string) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err.Error())} {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("the secret is in %q", text)
				}
			}
		}
	}
}

func passwordOf(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(os.Getenv(testDatabase))
	if err != nil {
		t.Fatal("the URL cannot be parsed")
	}
	password, ok := u.User.Password()
	if !ok {
		t.Fatal("the server for tests must ask for a password")
	}
	return password
}

func TestOpenToReadMakesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	_, err := openPlace(context.Background(), place, Options{MustExist: true})
	wantCode(t, err, fault.NotFound)
	var tables int
	const query = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()"
	wantEqual(t, rawPlace(t, place).QueryRow(query).Scan(&tables), nil)
	wantEqual(t, tables, 0)
	recordAttempts(t, open(t, place, Options{}), attempt("1"))
	wantEqual(t, verify(t, open(t, place, Options{MustExist: true}), "").Rows, int64(1))
}

func TestADatabaseThatCannotHoldAllTextIsRefused(t *testing.T) {
	t.Parallel()
	admin := connect(t, os.Getenv(testDatabase))
	const name = "claudeops_test_latin1"
	mustExec(t, admin, "CREATE DATABASE "+name+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { mustExec(t, admin, "DROP DATABASE "+name) })
	_, err := openPlace(t.Context(), changed(t, os.Getenv(testDatabase), func(u *url.URL) { u.Path = "/" + name }),
		Options{})
	wantCode(t, err, fault.Misconfigured)
	if !strings.Contains(err.Error(), "has the encoding LATIN1") {
		t.Fatalf("got %v", err)
	}
}

func TestTheNameOfAStoreShowsNeitherUserNorPassword(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	u, err := url.Parse(place)
	wantEqual(t, err, nil)
	want := u.Host + u.Path
	wantEqual(t, open(t, place, Options{}).Path(), want)
	wantEqual(t, newAt(place, Options{}).Path(), want)
	wantEqual(t, newAt("postgres://u:p/w@h/d", Options{}).Path(), "PostgreSQL")
}

func TestSchemasOfOneDatabaseDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s, other := openNew(t), openNew(t)
	defer holdWriteLock(t, other)()
	recordAttempts(t, s, attempt("1"))
}

func TestAWriterThatWaitsTooLongSaysWhy(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{BusyTimeout: time.Millisecond})
	defer holdWriteLock(t, s)()
	err := s.Ledger.Record(context.Background(), attempt("1"), nil)
	wantLocked(t, err, "session ")
}

func TestAProcessUsesAFewConnections(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s := open(t, withParameter(t, place, "application_name", "counted-"+t.Name()), Options{Readers: postgresReaders})
	done := make(chan struct{})
	for i := range 16 {
		go func() {
			defer func() { done <- struct{}{} }()
			id := fmt.Sprint(i)
			reserve(t, s, proposal(id, "checks/"+id+".md"), 0)
			abandoned(t, s)
		}()
	}
	for range 16 {
		<-done
	}
	var n int
	const query = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = $1"
	wantEqual(t, rawPlace(t, place).QueryRow(query, "counted-"+t.Name()).Scan(&n), nil)
	e := s.db.conn.engine.(*postgresEngine)
	if most := e.writer.Stats().MaxOpenConnections + e.reader.Stats().MaxOpenConnections + 1; n < 2 || n > most ||
		most != 4 {
		t.Fatalf("%d connections, at most %d", n, most)
	}
}

func TestTheServersOwnSettingsDoNotWeakenTheStore(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for name, value := range map[string]string{
		"synchronous_commit": "off", "default_transaction_isolation": "serializable",
	} {
		mustExec(t, rawPlace(t, place), fmt.Sprintf("ALTER ROLE claudeops_admin SET %s = '%s'", name, value))
		t.Cleanup(func() { mustExec(t, rawPlace(t, os.Getenv(testDatabase)), "ALTER ROLE claudeops_admin RESET "+name) })
	}
	tx, err := open(t, place, Options{}).db.conn.beginWrite(t.Context(), t.Context())
	wantEqual(t, err, nil)
	defer func() { _ = tx.Rollback() }()
	var commit, isolation string
	const query = "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')"
	wantEqual(t, tx.QueryRow(query).Scan(&commit, &isolation), nil)
	wantEqual(t, []string{commit, isolation}, []string{"on", "read committed"})
}

func TestACallAfterTheServerCutTheConnectionSaysSoAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	writer := s.db.conn.engine.(*postgresEngine).writer
	var pid int
	wantEqual(t, writer.QueryRow("SELECT pg_backend_pid()").Scan(&pid), nil)
	mustExec(t, raw(t, s), fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", pid))
	if err := s.Ledger.Record(context.Background(), attempt("2"), nil); err != nil { // a pool may have noticed before
		wantCode(t, err, fault.UpstreamError)
		if !strings.Contains(err.Error(), s.Path()+" cannot be reached any more") &&
			!strings.Contains(err.Error(), "is being stopped") {
			t.Fatalf("got %v", err)
		}
	}
	recordAttempts(t, s, attempt("3"))
}

// The settings of a server may be lost for a while; then it must not begin anew with SQLite.
func TestAStateFolderThatHasHadPostgreSQLStaysWithIt(t *testing.T) {
	t.Parallel()
	dir, place := t.TempDir(), newPlace(t)
	opened := func(o Options) error {
		s, err := Open(context.Background(), dir, o)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := opened(Options{DatabaseURL: place}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, opened(Options{}), fault.Misconfigured)
	for _, o := range []Options{{DatabaseURL: place}, {Kind: KindSQLite}, {}} {
		if err := opened(o); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, opened(Options{DatabaseURL: place}), fault.Misconfigured)
	for _, o := range []Options{{DatabaseURL: place, Kind: KindPostgreSQL}, {DatabaseURL: place}} {
		if err := opened(o); err != nil {
			t.Fatal(err)
		}
	}
}
