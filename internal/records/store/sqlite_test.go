//go:build !postgres

package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestOpenMakesFolderAndFilesThatOnlyTheOwnerReads(t *testing.T) {
	t.Parallel()
	for _, umask := range []string{"0", "22", "777"} {
		t.Run("umask "+umask, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			cmd := child(t, "open-under-umask", dir)
			own, err := os.Executable() // of the shell, /proc/self/exe would be the shell
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args = slices.Concat([]string{"sh", "-c", `umask "$0"; exec "$@"`, umask, own}, cmd.Args[1:])
			cmd.Path = "/bin/sh"
			if out, err := cmd.Output(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := map[string]fs.FileMode{
				".": fs.ModeDir | 0o700, databaseName: 0o600, databaseName + "-wal": 0o600,
				databaseName + "-shm": 0o600, lockName: 0o600,
				processesFolder: fs.ModeDir | 0o700, processesFolder + "/PROCESS": 0o600,
			}
			got := map[string]fs.FileMode{}
			must.Do(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if strings.HasPrefix(path, processesFolder+"/") {
					path = processesFolder + "/PROCESS"
				}
				got[path] = info.Mode()
				return err
			}))
			wantEqual(t, got, want)
		})
	}
}

func TestOpenTakesAnyFolderName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c=d%41#e&_pragma=query_only(1)")
	recordAttempts(t, open(t, dir, Options{}), attempt("1"))
	must.Get(os.Stat(filepath.Join(dir, databaseName)))(t)
}

func TestConnectionsAreSetUp(t *testing.T) {
	t.Parallel()
	s := open(t, emptyPlace(t), Options{})
	for _, test := range []struct {
		db     *sql.DB
		pragma string
		want   string
	}{
		{writerOf(s), "journal_mode", "wal"}, {writerOf(s), "synchronous", "2"}, {writerOf(s), "foreign_keys", "1"},
		{writerOf(s), "trusted_schema", "0"}, {writerOf(s), "recursive_triggers", "1"}, {writerOf(s), "query_only", "0"},
		{readerOf(s), "query_only", "1"}, {readerOf(s), "trusted_schema", "0"},
	} {
		var got string
		if err := test.db.QueryRow("PRAGMA " + test.pragma).Scan(&got); err != nil || got != test.want {
			t.Errorf("%s is %q, %v; want %s", test.pragma, got, err, test.want)
		}
	}
}

func TestOpenMakesParentsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b", "state")
	_, err := Open(context.Background(), dir, Options{})
	wantCode(t, err, fault.Misconfigured)
	open(t, dir, Options{MakeParents: true})
}

func TestOpenToReadMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	_, err := Open(context.Background(), dir, Options{MustExist: true})
	wantCode(t, err, fault.NotFound)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made")
	}
	recordAttempts(t, open(t, dir, Options{}), attempt("1"))
	must.Equal(t, verify(t, open(t, dir, Options{MustExist: true}), "").Rows, 1)
}

func TestOpenAgainRestoresWALAfterARestoredBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	change(t, dir, "PRAGMA journal_mode = DELETE")
	var mode string
	if err := readerOf(open(t, dir, Options{})).QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Fatalf("journal mode %q, %v", mode, err)
	}
}

func TestOpenFinishesAMigrationThatWasNotStamped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	change(t, dir, "PRAGMA user_version = 0")
	s := open(t, dir, Options{})
	newest := must.Get(newestVersion(migrations, sqliteMigrations))(t)
	if got := count(t, s, "PRAGMA user_version"); int64(got) != newest {
		t.Fatalf("schema %d, want %d", got, newest)
	}
}

func TestOpenClearsAwayAHalfMadeDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		write(t, dir, databaseName+draftSuffix+suffix, "half")
	}
	recordAttempts(t, open(t, dir, Options{}), attempt("1"))
	left, err := filepath.Glob(filepath.Join(dir, databaseName+draftSuffix+"*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left: %v, %v", left, err)
	}
}

func TestTheDiskIsTouchedAtTheFirstCallOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := newUnopened(t, dir)
	wantEqual(t, s.Path(), filepath.Join(dir, databaseName))
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made before the first call")
	}
	wantEqual(t, s.Ledger.Record(context.Background(), attempt("1"), nil), nil)
	must.Get(os.Stat(s.Path()))(t)
}

func TestAStoreThatIsClosedUnusedMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := New(dir, Options{})
	wantEqual(t, s.Close(), nil)
	wantCode(t, s.Ping(context.Background()), fault.Internal)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made")
	}
}

func TestAfterAFailureToOpenTheNextCallTriesAgain(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "state", "in the way")
	s := newUnopened(t, file)
	for range 2 {
		wantCode(t, s.Ping(context.Background()), fault.Misconfigured)
	}
	must.Do(t, os.Remove(file))
	wantEqual(t, s.Ping(context.Background()), nil)
}

func TestOpenGivesUpOnWhatItCannotUse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(t *testing.T, dir string) string // returns the folder to open
		message string
	}{
		"no folder named": {func(*testing.T, string) string { return "" }, "no state folder is configured"},
		"the folder is a file": {func(t *testing.T, dir string) string {
			return write(t, dir, "file", "text")
		}, "is a file"},
		"a folder above is a file": {func(t *testing.T, dir string) string {
			return filepath.Join(write(t, dir, "file", "text"), "state")
		}, "is a file"},
		"the parent is missing": {func(_ *testing.T, dir string) string {
			return filepath.Join(dir, "none", "state")
		}, "does not exist"},
		"a file system without files of ours": {func(*testing.T, string) string { return "/proc/self/claudeops" },
			"/proc/self/claudeops"},
		"the database is garbage": {func(t *testing.T, dir string) string {
			write(t, dir, databaseName, strings.Repeat("not a database. ", 1000))
			return dir
		}, "is not a database"},
		"the database is empty": {func(t *testing.T, dir string) string {
			write(t, dir, databaseName, "")
			return dir
		}, "is empty"},
		"the database is a folder": {func(t *testing.T, dir string) string {
			must.Do(t, os.Mkdir(filepath.Join(dir, databaseName), 0o700))
			return dir
		}, "is not a file"},
		"the database is gone but its journal is not": {func(t *testing.T, dir string) string {
			write(t, dir, databaseName+"-wal", "frames")
			return dir
		}, "journal"},
		"the records were in PostgreSQL": {func(t *testing.T, dir string) string {
			write(t, dir, kindName, KindPostgreSQL+"\n")
			return dir
		}, "are in postgresql, and CLAUDEOPS_DATABASE_URL is not set: correct that, or set CLAUDEOPS_RECORDS=sqlite"},
		"the database is another program's": {func(t *testing.T, dir string) string {
			change(t, dir, "PRAGMA application_id = 7")
			return dir
		}, "belongs to another program"},
		"the database is a newer version's": {func(t *testing.T, dir string) string {
			change(t, dir, "PRAGMA user_version = 99")
			return dir
		}, "written by a newer claudeops (schema 99"},
		"a newer version stopped in its migration": {func(t *testing.T, dir string) string {
			change(t, dir, "PRAGMA user_version = 0", "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
			return dir
		}, "written by a newer claudeops (schema 99"},
		"the header is damaged": {func(t *testing.T, dir string) string {
			path := filepath.Join(dir, databaseName)
			change(t, dir)
			overwrite(t, path, 0, 100)
			return dir
		}, "is not a database"},
	}
	damaged := []string{"is not a database", "is empty", "journal"} // what no setting mends
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := test.prepare(t, t.TempDir())
			before := snapshot(dir)
			_, err := Open(context.Background(), dir, Options{})
			want := fault.Misconfigured
			if slices.Contains(damaged, test.message) {
				want = fault.Internal
			}
			wantCode(t, err, want)
			if !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), filepath.Base(dir)) && dir != "" {
				t.Fatalf("the message does not say %q and name the folder: %v", test.message, err)
			}
			if after := snapshot(dir); !bytes.Equal(before, after) {
				t.Fatal("the file was changed")
			}
		})
	}
}

func TestOpenOfALockedDatabaseEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	change(t, dir)
	locker := rawFile(t, filepath.Join(dir, databaseName))
	mustExec(t, locker, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE",
		"INSERT INTO local_prs VALUES ('r', 1, '', '', '', '', '', '', 'open', '[]', '[]', 0, 0)")

	_, err := Open(context.Background(), dir, Options{BusyTimeout: time.Millisecond})
	wantCode(t, err, fault.Timeout, "stayed locked")

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = Open(ctx, dir, Options{BusyTimeout: time.Hour})
	wantCode(t, err, fault.Timeout)
}

func TestCallsAfterTheFileIsReplacedAreRefused(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	must.Do(t, os.Rename(s.Path(), s.Path()+".old"))
	err := s.Ledger.Record(context.Background(), attempt("1"), nil)
	wantCode(t, err, fault.Internal, "restart claudeops")
	wantCode(t, s.Ping(context.Background()), fault.Internal)
}

func TestADiskThatIsFullIsNamed(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	must.Get(writerOf(s).Exec("PRAGMA max_page_count = 1"))(t)
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Ledger.Record(context.Background(), attempt(fmt.Sprint(i)), nil)
	}
	wantCode(t, err, fault.Internal, "is full; free some space")
	if got := verify(t, s, ""); !got.OK() {
		t.Fatalf("got %+v", got)
	}
}

func TestDamageFoundLaterAsksForABackup(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for i := range 200 {
		recordAttempts(t, s, attempt(fmt.Sprint(i)))
	}
	verify(t, s, "")
	path := s.Path()
	must.Do(t, s.Close())
	info := must.Get(os.Stat(path))(t)
	middle := info.Size() * 3 / 4 / 4096 * 4096 // the tables' definitions stay readable
	overwrite(t, path, middle, int(info.Size()-middle))
	s = open(t, filepath.Dir(path), Options{})
	_, verifyErr := s.Audit.Verify(t.Context(), "")
	for name, err := range map[string]error{
		"Verify": verifyErr,
		"Record": s.Ledger.Record(context.Background(), attempt("x"), nil),
	} {
		wantCode(t, err, fault.Internal)
		const want = "is damaged; run `claudeops audit verify` and restore a backup"
		if !strings.Contains(err.Error(), want) || errCause(err) == nil {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

// A connection that has looked at the index of texts before takes what others add to it for damage.
func TestRowsThatAnotherProcessAddsAreNotDamage(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	ours, other := open(t, place, Options{NoSync: true}), open(t, place, Options{NoSync: true})
	for round := range 3 {
		for i := range 40 {
			recordAttempts(t, other, attempt(fmt.Sprintf("%d-%d", round, i)))
		}
		wantEqual(t, ours.Check(t.Context()), nil)
		if report := verify(t, ours, ""); !report.OK() || report.Rows != int64(40*(round+1)) {
			t.Fatalf("got %+v", report)
		}
	}
}

// Whether the structure is sound is found out where the audit is verified, and not at each look whether the records can
// be used. The chain is then read all the same.
func TestADamagedIndexIsFoundByVerifying(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	appendMany(t, s, 3)
	before := verify(t, s, "")
	mustExec(t, raw(t, s), "DELETE FROM attempt_texts_data WHERE id > 10")
	wantEqual(t, s.Check(t.Context()), nil)
	report := verify(t, s, before.Head)
	if report.OK() || !strings.Contains(report.Problem, "the database "+s.Path()+" is damaged (") ||
		!strings.HasSuffix(report.Problem, "); restore a backup") {
		t.Errorf("got the problem %q", report.Problem)
	}
	if report.Rows != before.Rows || report.Head != before.Head || report.FirstBad != 0 || report.ExpectedSeq != 3 {
		t.Errorf("got %+v of a chain that is whole", report)
	}
	if _, _, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "backup")); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a damaged database is backed up: %v", err)
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
	insert := " INTO audit (" + all + ") SELECT "
	for name, statement := range map[string]string{
		"update":                       "UPDATE audit SET caller = 'x' WHERE seq = 2",
		"update of nothing but a hash": "UPDATE OR REPLACE audit SET hash = hash WHERE seq = 2",
		"update of a number":           "UPDATE OR REPLACE audit SET seq = 2 WHERE seq = 3",
		"delete":                       "DELETE FROM audit WHERE seq = 3",
		"delete of all":                "DELETE FROM audit",
		"replace":                      "REPLACE" + insert + all + " FROM audit WHERE seq = 3",
		"insert or replace":            "INSERT OR REPLACE" + insert + all + " FROM audit WHERE seq = 2",
		"insert or ignore":             "INSERT OR IGNORE" + insert + forged("2", "prev_hash") + " FROM audit WHERE seq = 3",
		"upsert": "INSERT" + insert + all +
			" FROM audit WHERE seq = 2 ON CONFLICT DO UPDATE SET caller = 'x'",
		"insert with a gap":             "INSERT" + insert + forged("5", lastHash) + " FROM audit WHERE seq = 3",
		"insert before the first":       "INSERT" + insert + forged("0", lastHash) + " FROM audit WHERE seq = 3",
		"insert without a number":       "INSERT" + insert + forged("NULL", lastHash) + " FROM audit WHERE seq = 3",
		"insert on another hash":        "INSERT" + insert + forged("4", "prev_hash") + " FROM audit WHERE seq = 3",
		"insert or fail on a null hash": "INSERT OR FAIL" + insert + forged("4", "NULL") + " FROM audit WHERE seq = 3",
	} {
		t.Run(name, func(t *testing.T) {
			before := verify(t, s, "")
			for _, pragma := range []string{"PRAGMA recursive_triggers = 0", "PRAGMA recursive_triggers = 1"} {
				db := raw(t, s)
				mustExec(t, db, pragma)
				if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "the audit is ") {
					t.Errorf("%s: %v", pragma, err)
				}
				wantEqual(t, verify(t, s, ""), before)
			}
		})
	}
	must.Get(raw(t, s).Exec("INSERT" + insert + forged("4", lastHash) + " FROM audit WHERE seq = 3"))(t)
}

func TestKeptStatementsAnswerAsOnesThatAreCompiledAnew(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	appendMany(t, s, 5)
	db := readerOf(s)
	db.SetMaxOpenConns(1)
	one := func(query string, args ...any) (n int) {
		t.Helper()
		must.Do(t, db.QueryRow(query, args...).Scan(&n))
		return n
	}

	t.Run("the same query while its rows are read", func(t *testing.T) {
		const query = "SELECT seq FROM audit WHERE seq >= $1 ORDER BY seq"
		tx := must.Get(db.Begin())(t)
		var got []string
		must.Do(t, queryRows(t.Context(), tx, func(rows *sql.Rows) error {
			var outer int
			if err := rows.Scan(&outer); err != nil {
				return err
			}
			return queryRows(t.Context(), tx, func(rows *sql.Rows) error {
				var inner int
				err := rows.Scan(&inner)
				got = append(got, fmt.Sprint(outer, inner))
				return err
			}, query, outer)
		}, query, 4))
		wantEqual(t, got, []string{"4 4", "4 5", "5 5"})
		wantEqual(t, tx.Rollback(), nil)
	})
	t.Run("with other arguments, after rows that nobody read to their end, and after an error", func(t *testing.T) {
		const query = "SELECT seq FROM audit WHERE seq > $1 ORDER BY seq"
		wantEqual(t, one(query, 0), 1)
		wantEqual(t, one(query, 3), 4)
		if err := db.QueryRow(query, struct{}{}).Scan(new(int)); err == nil {
			t.Error("a struct is an argument")
		}
		wantEqual(t, one(query, 1), 2)
	})
	t.Run("after its caller went away", func(t *testing.T) {
		const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + $1 FROM n) SELECT COUNT(*) FROM n"
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- db.QueryRowContext(ctx, endless, 1).Scan(new(int)) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		wantEqual(t, one("SELECT COUNT(*) FROM audit WHERE seq > $1", 3), 2)
	})
	t.Run("after another connection has changed the tables", func(t *testing.T) {
		const query = "SELECT COUNT(*) FROM later WHERE word <> $1"
		mustExec(t, writerOf(s), "CREATE TABLE later (word TEXT)", "INSERT INTO later VALUES ('a')")
		wantEqual(t, one(query, "b"), 1)
		mustExec(t, writerOf(s), "DROP TABLE later", "CREATE TABLE later (other INTEGER, word TEXT)",
			"INSERT INTO later VALUES (1, 'a'), (2, 'c')")
		wantEqual(t, one(query, "a"), 1)
		wantEqual(t, one("SELECT MAX(other) FROM later WHERE word <> $1", ""), 2)
	})
	t.Run("more of them than a connection keeps", func(t *testing.T) {
		for range 2 {
			for i := range maxStatements + 10 {
				wantEqual(t, one(fmt.Sprintf("SELECT seq + %d FROM audit WHERE seq = $1", i), 2), 2+i)
			}
		}
	})
}

func TestWhatIsKeptCompiled(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"SELECT 1": true, "\n\tINSERT INTO a VALUES (1)": true, "WITH a AS (SELECT 1) SELECT 1": true,
		"UPDATE a SET b = 1": true, "DELETE FROM a": true,
		"PRAGMA data_version": false, "BEGIN": false, "SELECT 1; SELECT 2": false, "": false, "VACUUM INTO 'x'": false,
		"CREATE TABLE a (b)": false,
	} {
		wantEqual(t, keepsCompiled(query), want)
	}
}

// A page of changes is read from the end of an index, whatever its tab: nothing is gathered and sorted for it.
func TestPagesOfChangesAreReadInTheirOrder(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for _, tab := range append([]record.Tab{""}, record.Tabs()...) {
		for _, repo := range []string{"", "demo/home-cluster"} {
			query, args := s.db.attemptClauses(record.AttemptQuery{Tab: tab, Changes: true, Repo: repo})
			rows := must.Get(readerOf(s).Query("EXPLAIN QUERY PLAN "+query, args...))(t)
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var step string
				wantEqual(t, rows.Scan(&id, &parent, &unused, &step), nil)
				if strings.Contains(step, "MULTI-INDEX") || strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("the tab %q of %q: %s", tab, repo, step)
				}
			}
			wantEqual(t, rows.Err(), nil)
		}
	}
}
