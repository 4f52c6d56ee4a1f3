package store

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

func TestOpenMakesFolderAndFilesThatOnlyTheOwnerReads(t *testing.T) {
	for _, umask := range []string{"0", "22", "777"} {
		t.Run("umask "+umask, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if out, err := child(t, "open-under-umask", dir, umask).Output(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := map[string]fs.FileMode{
				".": fs.ModeDir | 0o700, databaseName: 0o600, databaseName + "-wal": 0o600, databaseName + "-shm": 0o600, lockName: 0o600,
			}
			got := map[string]fs.FileMode{}
			err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
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
	dir := filepath.Join(t.TempDir(), "a b?c=d%41#e&_pragma=query_only(1)")
	record(t, open(t, dir, Options{}), attempt("1"))
	if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
		t.Fatal(err)
	}
}

func TestOpenMakesParentsOnlyWhenAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "state")
	_, err := Open(context.Background(), dir, Options{})
	wantCode(t, err, fault.Internal)
	open(t, dir, Options{MakeParents: true})
}

func TestOpenToReadMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, err := Open(context.Background(), dir, Options{MustExist: true})
	wantCode(t, err, fault.NotFound)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder was made")
	}
	record(t, open(t, dir, Options{}), attempt("1"))
	if got := verify(t, open(t, dir, Options{MustExist: true}), ""); got.Rows != 1 {
		t.Fatalf("got %+v", got)
	}
}

func TestOpenGivesUpOnWhatItCannotUse(t *testing.T) {
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
			if err := os.Mkdir(filepath.Join(dir, databaseName), 0o700); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "is not a file"},
		"the database is gone but its journal is not": {func(t *testing.T, dir string) string {
			write(t, dir, databaseName+"-wal", "frames")
			return dir
		}, "journal"},
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
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := test.prepare(t, t.TempDir())
			before := snapshot(dir)
			_, err := Open(context.Background(), dir, Options{})
			wantCode(t, err, fault.Internal)
			if !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), filepath.Base(dir)) && dir != "" {
				t.Fatalf("the message does not say %q and name the folder: %v", test.message, err)
			}
			if after := snapshot(dir); !bytes.Equal(before, after) {
				t.Fatal("the file was changed")
			}
		})
	}
}

func TestOpenWithoutPermissionSaysWhoNeedsIt(t *testing.T) {
	base := t.TempDir()
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	readable := filepath.Join(base, "readable")
	if err := os.Mkdir(readable, 0o555); err != nil {
		t.Fatal(err)
	}
	existing := filepath.Join(base, "existing")
	change(t, existing)
	if err := os.Chmod(existing, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{readable, filepath.Join(readable, "state"), existing} {
		cmd := child(t, "open-and-print-error", dir)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), "[internal] the state folder "+dir+" cannot be written; give the user") {
			t.Errorf("%s: %s", filepath.Base(dir), out)
		}
	}
}

func TestOpenOfALockedDatabaseEnds(t *testing.T) {
	dir := t.TempDir()
	change(t, dir)
	locker := rawFile(t, filepath.Join(dir, databaseName))
	mustExec(t, locker, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE",
		"INSERT INTO local_prs VALUES ('r', 1, '', '', '', '', '', '', 'open', '[]', '[]', 0, 0)")

	_, err := Open(context.Background(), dir, Options{BusyTimeout: time.Millisecond})
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "stayed locked") {
		t.Errorf("got %v", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = Open(ctx, dir, Options{BusyTimeout: time.Hour})
	wantCode(t, err, fault.Timeout)
}

func TestOpenAgainRestoresWALAfterARestoredBackup(t *testing.T) {
	dir := t.TempDir()
	change(t, dir, "PRAGMA journal_mode = DELETE")
	var mode string
	if err := open(t, dir, Options{}).reader.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Fatalf("journal mode %q, %v", mode, err)
	}
}

func TestOpenFinishesAMigrationThatWasNotStamped(t *testing.T) {
	dir := t.TempDir()
	change(t, dir, "PRAGMA user_version = 0")
	s := open(t, dir, Options{})
	newest, err := newestVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, s, "PRAGMA user_version"); int64(got) != newest {
		t.Fatalf("schema %d, want %d", got, newest)
	}
}

func TestOpenClearsAwayAHalfMadeDatabase(t *testing.T) {
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		write(t, dir, databaseName+draftSuffix+suffix, "half")
	}
	record(t, open(t, dir, Options{}), attempt("1"))
	left, err := filepath.Glob(filepath.Join(dir, databaseName+draftSuffix+"*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left: %v, %v", left, err)
	}
}

func TestSixteenProcessesOpenAnEmptyFolderAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if out, err := child(t, "race", dir, fmt.Sprint(i), "1").Output(); err != nil {
				t.Errorf("process %d: %v %s", i, err, out)
			}
		})
	}
	wg.Wait()
	if got := verify(t, open(t, dir, Options{}), ""); !got.OK() || got.Rows != 16 {
		t.Fatalf("got %+v", got)
	}
}

func TestCallsAfterTheFileIsReplacedAreRefused(t *testing.T) {
	s := openNew(t)
	if err := os.Rename(s.Path(), s.Path()+".old"); err != nil {
		t.Fatal(err)
	}
	err := s.Record(context.Background(), attempt("1"), nil)
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "restart claudeops") {
		t.Fatalf("got %v", err)
	}
	wantCode(t, s.Ping(context.Background()), fault.Internal)
}

func TestADiskThatIsFullIsNamed(t *testing.T) {
	s := openNew(t)
	if _, err := s.writer.Exec("PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Record(context.Background(), attempt(fmt.Sprint(i)), nil)
	}
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "is full; free some space") {
		t.Fatalf("got %v", err)
	}
	if got := verify(t, s, ""); !got.OK() {
		t.Fatalf("got %+v", got)
	}
}

func TestDamageFoundLaterAsksForABackup(t *testing.T) {
	s := openNew(t)
	for i := range 200 {
		record(t, s, attempt(fmt.Sprint(i)))
	}
	wantEqual(t, s.Check(context.Background()), nil)
	path := s.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	middle := info.Size() / 2 / 4096 * 4096 // the tables' definitions stay readable
	overwrite(t, path, middle, int(info.Size()-middle))
	s = open(t, filepath.Dir(path), Options{})
	for name, err := range map[string]error{
		"Check":  s.Check(context.Background()),
		"Record": s.Record(context.Background(), attempt("x"), nil),
	} {
		wantCode(t, err, fault.Internal)
		if !strings.Contains(err.Error(), "is damaged; run `claudeops audit verify` and restore a backup") || errCause(err) == nil {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

func TestCheckNoticesMissingGuards(t *testing.T) {
	s := openNew(t)
	mustExec(t, raw(t, s), "DROP TRIGGER audit_refuses_update")
	err := s.Check(context.Background())
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "removed the triggers") {
		t.Fatalf("got %v", err)
	}
}

func TestEveryMethodHonoursACancelledContext(t *testing.T) {
	s := openNew(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, openErr := Open(ctx, filepath.Join(t.TempDir(), "state"), Options{})
	_, openedErr := s.Opened(ctx, "d")
	_, reserveErr := s.Reserve(ctx, proposal("1", "checks/a.md"), noon())
	_, auditErr := s.Audit(ctx, AuditQuery{})
	_, verifyErr := s.VerifyAudit(ctx, "")
	_, prErr := s.PRs(ctx, "demo/home-cluster", "")
	for name, err := range map[string]error{
		"Open": openErr, "Opened": openedErr, "Reserve": reserveErr, "Audit": auditErr, "VerifyAudit": verifyErr, "PRs": prErr,
		"Record": s.Record(ctx, attempt("1"), nil), "Check": s.Check(ctx), "Ping": s.Ping(ctx),
	} {
		if fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

func TestAWaitingWriterHonoursItsContext(t *testing.T) {
	s := openNew(t)
	other := raw(t, s)
	mustExec(t, other, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	wantCode(t, s.Record(ctx, attempt("1"), nil), fault.Timeout)
	mustExec(t, other, "ROLLBACK")
	record(t, s, attempt("1"))
}
