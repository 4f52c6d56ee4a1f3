//go:build postgres

package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	accounts "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
			wantCode(t, err, fault.Misconfigured, test.message)
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
	wantCode(t, err, fault.Misconfigured, "has the encoding LATIN1")
}

func TestTheNameOfAStoreShowsNeitherUserNorPassword(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	u := must.Get(url.Parse(place))(t)
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
	tx := must.Get(open(t, place, Options{}).db.conn.beginWrite(t.Context(), t.Context()))(t)
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
	must.Do(t, opened(Options{DatabaseURL: place}))
	wantCode(t, opened(Options{}), fault.Misconfigured)
	for _, o := range []Options{{DatabaseURL: place}, {Kind: KindSQLite}, {}} {
		must.Do(t, opened(o))
	}
	wantCode(t, opened(Options{DatabaseURL: place}), fault.Misconfigured)
	for _, o := range []Options{{DatabaseURL: place, Kind: KindPostgreSQL}, {DatabaseURL: place}} {
		must.Do(t, opened(o))
	}
}

func TestTheDatabaseRefusesToChangeTheAudit(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"), attempt("2"), attempt("3"))
	all := strings.Join(auditColumnNames(), ", ") + ", hash"
	forged := func(seq, prev string) string {
		return strings.Replace(strings.Replace(all, "seq,", seq+",", 1), "prev_hash,", prev+",", 1)
	}
	const lastHash = "(SELECT hash FROM audit WHERE seq = 3)"
	insert := "INSERT INTO audit (" + all + ") SELECT "
	for name, statement := range map[string]string{
		"update":                  "UPDATE audit SET caller = 'x' WHERE seq = 2",
		"update of nothing":       "UPDATE audit SET caller = 'x' WHERE seq = 99",
		"delete":                  "DELETE FROM audit WHERE seq = 3",
		"delete of all":           "DELETE FROM audit",
		"truncate":                "TRUNCATE audit",
		"truncate of all":         "TRUNCATE audit, notices CASCADE",
		"merge":                   "MERGE INTO audit a USING (VALUES (3)) v (n) ON a.seq = n WHEN MATCHED THEN DELETE",
		"upsert":                  insert + all + " FROM audit WHERE seq = 2 ON CONFLICT (seq) DO UPDATE SET caller = 'x'",
		"insert or nothing":       insert + all + " FROM audit WHERE seq = 2 ON CONFLICT DO NOTHING",
		"insert with a gap":       insert + forged("5", lastHash) + " FROM audit WHERE seq = 3",
		"insert before the first": insert + forged("0", lastHash) + " FROM audit WHERE seq = 3",
		"insert without a number": insert + forged("NULL", lastHash) + " FROM audit WHERE seq = 3",
		"insert on another hash":  insert + forged("4", "prev_hash") + " FROM audit WHERE seq = 3",
		"insert on a null hash":   insert + forged("4", "NULL") + " FROM audit WHERE seq = 3",
		"insert of two": insert + "n, " + strings.TrimPrefix(all, "seq, ") +
			" FROM audit, (VALUES (3), (4)) v (n) WHERE seq = 2",
	} {
		t.Run(name, func(t *testing.T) {
			before := verify(t, s, "")
			for _, setting := range []string{"SET session_replication_role = origin", "SET session_replication_role = replica"} {
				db := raw(t, s)
				mustExec(t, db, setting)
				if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "the audit is ") {
					t.Errorf("%s: %v", setting, err)
				}
				wantEqual(t, verify(t, s, ""), before)
			}
		})
	}
	must.Get(raw(t, s).Exec(insert + forged("4", lastHash) + " FROM audit WHERE seq = 3"))(t)
}

func TestNoTemporaryTableStandsInForTheAudit(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	db := raw(t, s)
	mustExec(t, db, "CREATE TEMPORARY TABLE audit AS SELECT 41::bigint AS seq, repeat('0', 64) AS hash")
	all := strings.Join(auditColumnNames(), ", ") + ", hash"
	var schema string
	wantEqual(t, readerOf(s).QueryRow("SELECT current_schema()").Scan(&schema), nil)
	_, err := db.Exec(fmt.Sprintf("INSERT INTO %s.audit (%s) SELECT 42, repeat('0', 64), %s FROM %s.audit", schema, all,
		strings.TrimPrefix(all, "seq, prev_hash, "), schema))
	if err == nil || !strings.Contains(err.Error(), "the audit is a chain") {
		t.Fatalf("got %v", err)
	}
}

// grants returns the statements that docs/explain/records.md lists for a user that does not own the tables.
func grants(schema, role string) []string {
	return []string{
		"GRANT USAGE ON SCHEMA " + schema + " TO " + role,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO " + role,
		"REVOKE UPDATE, DELETE ON " + schema + ".audit FROM " + role,
		"REVOKE INSERT, UPDATE, DELETE ON " + schema + ".claudeops_versions FROM " + role,
	}
}

func TestAUserThatDoesNotOwnTheTablesCanWorkAndCannotUnguardTheAudit(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	u := must.Get(url.Parse(place))(t)
	schema, role, admin := u.Query().Get("search_path"), "r_"+
		u.Query().Get("search_path"), connect(t, os.Getenv(testDatabase))
	mustExec(t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD 'user-password'")
	t.Cleanup(func() { mustExec(t, admin, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	asUser := changed(t, place, func(u *url.URL) { u.User = url.UserPassword(role, "user-password") })

	mustExec(t, admin, grants(schema, role)[0])
	_, err := openPlace(t.Context(), asUser, Options{}) // there is nothing yet, and it may not make it
	wantCode(t, err, fault.Misconfigured, "denies the user", "docs/explain/records.md")
	open(t, place, Options{})
	mustExec(t, admin, "SET search_path = "+schema)
	mustExec(t, admin, grants(schema, role)...)
	useAll(t, open(t, asUser, Options{Now: noon}))
	for _, statement := range append(dropGuards(), dropOneGuard(), "DELETE FROM audit", "TRUNCATE audit",
		"DROP TABLE audit",
		"CREATE OR REPLACE FUNCTION audit_refuses_changes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
		"INSERT INTO claudeops_versions (version_id, is_applied) VALUES (99, true)") {
		if _, err := connect(t, asUser).Exec(statement); sqlState(err) != stateNoPrivilege {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// useAll calls what needs rights.
func useAll(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	dryRun := proposal("dry", "checks/a.md")
	wantEqual(t, s.Ledger.Record(ctx, attempt("dry"), &dryRun, notice("a")), nil)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted}), nil)
	finish(t, s, "1", opened(1))
	wantEqual(t, claim(t, s, noon(), 1), "a/0")
	settle(t, s, 1, record.NoticeSettlement{Delivered: true})
	wantEqual(t, claim(t, s, noon().AddDate(1, 0, 0), 1), "")
	insert(t, s, demoRepo, pull("a"))
	wantEqual(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, closePR), nil)
	wantEqual(t, s.Check(ctx), nil)
	wantEqual(t, abandoned(t, s), map[string]bool{})
}

func TestAPoolerOfSessionsIsAsGoodAsTheServer(t *testing.T) {
	place := throughPgbouncer(t, "session")
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, abandoned(t, other), map[string]bool{"1": false})
	var schema, timeout, commit string
	wantEqual(t, readerOf(s).QueryRow("SELECT current_schema(), current_setting('lock_timeout'), "+
		"current_setting('idle_in_transaction_session_timeout')").Scan(&schema, &timeout, &commit), nil)
	if !strings.HasPrefix(schema, "t_") || timeout != "15s" || commit != "2min" {
		t.Errorf("schema %s, lock_timeout %s, idle_in_transaction_session_timeout %s", schema, timeout, commit)
	}
	finish(t, s, "1", opened(1))
}

func TestAPoolerOfTransactionsIsRefusedByItsName(t *testing.T) {
	_, err := openPlace(t.Context(), throughPgbouncer(t, "transaction"), Options{})
	wantCode(t, err, fault.Misconfigured, "a pooler in transaction mode")
}

// throughPgbouncer is an empty place whose address is that of a pooler of its own.
func throughPgbouncer(t *testing.T, mode string) string {
	t.Helper()
	place := newPlace(t)
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal("the URL cannot be parsed")
	}
	password, _ := u.User.Password()
	dir, port := t.TempDir(), freePort(t)
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // of the folder of all of this test's
		t.Fatal(err)
	}
	users, config := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	for path, text := range map[string]string{
		users: fmt.Sprintf("%q %q\n", u.User.Username(), password),
		config: fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
			"unix_socket_dir =\nauth_type = plain\nauth_file = %s\npool_mode = %s\n", u.Port(), port, users, mode),
	} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	cmd := exec.Command("pgbouncer", "-q", config)
	if os.Getuid() == 0 { // as root it does not start
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(t)}
	}
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the kill is its error
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	until(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return changed(t, place, func(u *url.URL) { u.Host = address })
}

func freePort(t *testing.T) int {
	t.Helper()
	const first, many = 20000, 12000 // below those that Linux gives to connections that go out
	for range 100 {
		port := first + rand.IntN(many)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	uid := must.Get(strconv.ParseUint(must.Get(accounts.Lookup("nobody"))(t).Uid, 10, 32))(t)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
}
