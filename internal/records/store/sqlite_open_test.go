//go:build !postgres

package store

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
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
			err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if strings.HasPrefix(path, processesFolder+"/") {
					path = processesFolder + "/PROCESS"
				}
				got[path] = info.Mode()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, got, want)
		})
	}
}

func TestOpenTakesAnyFolderName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c=d%41#e&_pragma=query_only(1)")
	recordAttempts(t, open(t, dir, Options{}), attempt("1"))
	if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
		t.Fatal(err)
	}
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
	if got := verify(t, open(t, dir, Options{MustExist: true}), ""); got.Rows != 1 {
		t.Fatalf("got %+v", got)
	}
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
	newest, err := newestVersion(migrations, sqliteMigrations)
	if err != nil {
		t.Fatal(err)
	}
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
