//go:build !postgres

package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// copied makes records with attempts of those ids, and returns a copy of them.
func copied(t testing.TB, ids ...string) (path, head string) {
	t.Helper()
	s := openNew(t)
	for _, id := range ids {
		recordAttempts(t, s, attempt(id))
	}
	path = filepath.Join(t.TempDir(), "copy.db")
	c, err := s.CopyTo(context.Background(), path)
	if err != nil {
		t.Fatalf("CopyTo: %v (%v)", err, errCause(err))
	}
	return path, c.Audit.Head
}

// unpackFiles puts a database and a key into the folder, as a backup does.
func unpackFiles(t testing.TB, database, key string) func(string) error {
	return func(folder string) error {
		content, err := os.ReadFile(database)
		if err != nil {
			return err
		}
		write(t, folder, databaseName, string(content))
		if key != "" {
			write(t, folder, "mark.key", key)
		}
		return nil
	}
}

func restoreRow(record.AuditReport) record.Attempt {
	return record.Attempt{Time: noon(), RequestID: "restore", Action: "restore", Outcome: record.OutcomeDone}
}

func restoreInto(t testing.TB, dir, database, key string, change func(*RestoreOptions)) (Restored, error) {
	t.Helper()
	opts := RestoreOptions{Options: Options{Now: noon}, Row: restoreRow}
	if change != nil {
		change(&opts)
	}
	return Restore(context.Background(), dir, opts, unpackFiles(t, database, key))
}

func replacing(o *RestoreOptions) { o.Replace = true }

// rowsIn are the request ids of the audit in dir.
func rowsIn(t testing.TB, dir string) string {
	t.Helper()
	s, err := Open(context.Background(), dir, Options{MustExist: true})
	if err != nil {
		t.Fatalf("Open: %v (%v)", err, errCause(err))
	}
	defer func() { wantEqual(t, s.Close(), nil) }()
	wantEqual(t, verify(t, s, "").OK(), true)
	rows, err := s.Audit(context.Background(), record.AuditQuery{Ascending: true})
	wantEqual(t, err, nil)
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.RequestID)
	}
	return strings.Join(ids, " ")
}

// closedRecords makes records in a folder and closes them.
func closedRecords(t testing.TB, ids ...string) string {
	t.Helper()
	dir := newPlace(t)
	s, err := Open(context.Background(), dir, Options{Now: noon})
	wantEqual(t, err, nil)
	for _, id := range ids {
		recordAttempts(t, s, attempt(id))
	}
	wantEqual(t, s.Close(), nil)
	write(t, dir, "mark.key", "old key")
	return dir
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// tree is every name below the folder and the content of its files but those of locks.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != lockName && d.Name() != useName {
			out[strings.TrimPrefix(path, dir)] = content(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRestoredRecordsGoOnWhereTheyWere(t *testing.T) {
	ctx := context.Background()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	reserve(t, s, proposal("held", "checks/a.md"), 0)
	path := filepath.Join(t.TempDir(), "copy.db")
	c, err := s.CopyTo(ctx, path)
	wantEqual(t, err, nil)
	dir := newPlace(t)
	got, err := restoreInto(t, dir, path, "a key", func(o *RestoreOptions) { o.ExpectHead = c.Audit.Head })
	wantEqual(t, err, nil)
	wantEqual(t, []any{got.Aside, got.Audit.Rows, got.Schema}, []any{"", int64(1), c.Schema})
	wantEqual(t, rowsIn(t, dir), "1 restore")
	wantEqual(t, content(t, filepath.Join(dir, "mark.key")), "a key")
	restored := open(t, dir, Options{Now: noon})
	wantEqual(t, abandoned(t, restored), map[string]bool{"held": true}) // its process is not of this folder: settled as usual
	wantEqual(t, restored.Check(ctx), nil)
}

func TestReplacedRecordsAreMovedAsideWhole(t *testing.T) {
	path, _ := copied(t, "new")
	for round, want := range []string{"replaced-20260301T120000Z", "replaced-20260301T120000Z-2"} {
		dir := closedRecords(t, "old")
		if round == 1 { // a name that is taken
			wantEqual(t, os.Mkdir(filepath.Join(dir, "replaced-20260301T120000Z"), 0o700), nil)
		}
		got, err := restoreInto(t, dir, path, "new key", replacing)
		wantEqual(t, err, nil)
		wantEqual(t, got.Aside, filepath.Join(dir, want))
		wantEqual(t, rowsIn(t, dir), "new restore")
		wantEqual(t, content(t, filepath.Join(dir, "mark.key")), "new key")
		wantEqual(t, content(t, filepath.Join(got.Aside, "mark.key")), "old key")
		wantEqual(t, rowsIn(t, got.Aside), "old")
	}
}

func TestDamagedRecordsAndTheirJournalAreReplacedToo(t *testing.T) {
	path, _ := copied(t, "new")
	dir := closedRecords(t, "old")
	write(t, dir, databaseName, "rubbish")
	write(t, dir, databaseName+"-wal", "a journal that must never be applied to the new database")
	got, err := restoreInto(t, dir, path, "", replacing)
	wantEqual(t, err, nil)
	wantEqual(t, rowsIn(t, dir), "new restore")
	wantEqual(t, content(t, filepath.Join(got.Aside, databaseName)), "rubbish")
	wantEqual(t, content(t, filepath.Join(dir, "mark.key")), "old key") // the backup has none
}

func TestABackupThatIsNoGoodChangesNothing(t *testing.T) {
	good, head := copied(t, "1", "2")
	altered := func(statements ...string) string {
		path := write(t, t.TempDir(), "altered.db", content(t, good))
		db := rawFile(t, path)
		mustExec(t, db, statements...)
		wantEqual(t, db.Close(), nil)
		return path
	}
	guardless := dropGuards()
	for name, test := range map[string]struct {
		database string
		change   func(*RestoreOptions)
		says     string
	}{
		"garbage":                  {write(t, t.TempDir(), "g", strings.Repeat("garbage ", 1000)), nil, "is damaged"},
		"cut off":                  {write(t, t.TempDir(), "c", content(t, good)[:40960]), nil, "is damaged"},
		"empty":                    {write(t, t.TempDir(), "e", ""), nil, "another program"},
		"of another program":       {altered("PRAGMA application_id = 1"), nil, "another program"},
		"of a newer claudeops":     {altered("PRAGMA user_version = 9000"), nil, "newer claudeops"},
		"an audit without guards":  {altered(guardless...), nil, "triggers that protect"},
		"a dangling reservation":   {altered("PRAGMA foreign_keys = 0", "INSERT INTO reservations VALUES ('p', 'r', 'x', 'nobody')"), nil, "refer to rows"},
		"a trigger of others":      {altered("CREATE TRIGGER evil AFTER INSERT ON proposals BEGIN SELECT 1; END"), nil, "does not make"},
		"a lacking index":          {altered("DROP INDEX audit_by_code"), nil, "lacks"},
		"an expected head missing": {good, func(o *RestoreOptions) { o.ExpectHead = strings.Repeat("a", 64) }, "does not contain the expected head"},
		"a head that is no hash":   {good, func(o *RestoreOptions) { o.ExpectHead = head[:10] }, "64 hexadecimal"},
		"an altered row": {altered(append(dropGuards(), "UPDATE audit SET tier = 3 WHERE seq = 1",
			"CREATE TRIGGER audit_insert_extends_chain BEFORE INSERT ON audit BEGIN SELECT 1; END",
			"CREATE TRIGGER audit_refuses_update BEFORE UPDATE ON audit BEGIN SELECT 1; END",
			"CREATE TRIGGER audit_refuses_delete BEFORE DELETE ON audit BEGIN SELECT 1; END")...), nil, "not whole: row 1 was altered"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := closedRecords(t, "old")
			before := tree(t, dir)
			_, err := restoreInto(t, dir, test.database, "new key", func(o *RestoreOptions) {
				o.Replace = true
				if test.change != nil {
					test.change(o)
				}
			})
			wantCode(t, err, fault.InvalidArgument)
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			wantEqual(t, tree(t, dir), before)
		})
	}
}

func TestAnOlderBackupIsBroughtUpToDate(t *testing.T) {
	old := oldPlace(t, firstVersion()...)
	dir := newPlace(t)
	got, err := restoreInto(t, dir, filepath.Join(old, databaseName), "", nil)
	wantEqual(t, err, nil)
	wantEqual(t, got.Schema, int64(1))
	wantEqual(t, rowsIn(t, dir), "old restore")
}

func TestRecordsAndKeysThatAreThereStay(t *testing.T) {
	path, _ := copied(t, "new")
	for name, prepare := range map[string]func(dir string){
		"records": func(string) {},
		"a journal alone": func(dir string) {
			wantEqual(t, os.Rename(filepath.Join(dir, databaseName), filepath.Join(dir, databaseName+"-wal")), nil)
		},
		"another key alone":     func(dir string) { wantEqual(t, os.Remove(filepath.Join(dir, databaseName)), nil) },
		"a link in their place": func(dir string) { link(t, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := closedRecords(t, "old")
			prepare(dir)
			before := tree(t, dir)
			_, err := restoreInto(t, dir, path, "new key", nil)
			wantCode(t, err, fault.Conflict)
			wantEqual(t, tree(t, dir), before)
		})
	}
	dir := closedRecords(t, "old")
	link(t, dir)
	_, err := restoreInto(t, dir, path, "new key", replacing)
	wantCode(t, err, fault.Conflict)
}

// link makes the database a symbolic link to itself elsewhere.
func link(t testing.TB, dir string) {
	t.Helper()
	path, elsewhere := filepath.Join(dir, databaseName), filepath.Join(t.TempDir(), "elsewhere.db")
	if err := errors.Join(os.Rename(path, elsewhere), os.Symlink(elsewhere, path)); err != nil {
		t.Fatal(err)
	}
}

func TestNobodyRestoresUnderAProcessThatUsesTheFolder(t *testing.T) {
	path, _ := copied(t, "new")
	dir := closedRecords(t, "old")
	cmd, _ := holder(t, dir, "held")
	_, err := restoreInto(t, dir, path, "", replacing)
	wantCode(t, err, fault.Conflict)
	if !strings.Contains(err.Error(), "another process uses") {
		t.Errorf("got %v", err)
	}
	kill(t, cmd)
	_, err = restoreInto(t, dir, path, "", replacing)
	wantEqual(t, err, nil)
	wantEqual(t, rowsIn(t, dir), "new restore")
}

func TestAProcessThatOnlyReadsKeepsARestoreAway(t *testing.T) {
	path, _ := copied(t, "new")
	dir := closedRecords(t, "old")
	s := open(t, dir, Options{MustExist: true})
	_, err := restoreInto(t, dir, path, "", replacing)
	wantCode(t, err, fault.Conflict)
	wantEqual(t, s.Close(), nil)
	_, err = restoreInto(t, dir, path, "", replacing)
	wantEqual(t, err, nil)
}
