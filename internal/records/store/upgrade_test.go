package store

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// laterVersion has our migrations and one more, with the statements.
func laterVersion(t testing.TB, statements string) Options {
	t.Helper()
	later := fstest.MapFS{}
	for _, dir := range []string{sqliteMigrations, postgresMigrations} {
		entries, err := fs.ReadDir(migrations, dir)
		wantEqual(t, err, nil)
		for _, entry := range entries {
			name := path.Join(dir, entry.Name())
			data, err := fs.ReadFile(migrations, name)
			wantEqual(t, err, nil)
			later[name] = &fstest.MapFile{Data: data}
		}
		later[path.Join(dir, "09999_later.sql")] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + statements)}
	}
	return Options{Now: noon, migrations: later, Process: Process{Version: "1.0.0"}}
}

const addTable = "CREATE TABLE later (id INTEGER);\n"

func TestADatabaseOfAnOlderVersionIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s := open(t, place, Options{Now: noon})
	recordAttempts(t, s, attempt("old"))
	older := versionAt(t, place)
	wantEqual(t, s.Close(), nil)

	// A migration that fails leaves everything as it was.
	_, err := openPlace(t.Context(), place, laterVersion(t, addTable+"DROP TABLE not_there;\n"))
	wantCode(t, err, fault.Internal)
	wantEqual(t, versionAt(t, place), older)
	s = open(t, place, Options{Now: noon})
	wantEqual(t, verify(t, s, "").Rows, int64(1))
	wantEqual(t, s.Close(), nil)

	s = open(t, place, laterVersion(t, addTable))
	wantEqual(t, []int{versionAt(t, place), count(t, s, "SELECT COUNT(*) FROM later")}, []int{9999, 0})
	wantEqual(t, s.Check(t.Context()), nil)
	recordAttempts(t, s, attempt("new"))
	wantEqual(t, verify(t, s, "").Rows, int64(2))

	_, err = openPlace(t.Context(), place, Options{})
	wantCode(t, err, fault.Misconfigured)
	if !strings.Contains(err.Error(), "written by a newer claudeops (schema 9999") {
		t.Errorf("got %v", err)
	}
}

func TestTablesAreNotChangedUnderAProcessOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	pid, end := usedBy(t, place, "0.9.7")
	older := versionAt(t, place)
	_, err := openPlace(context.Background(), place, laterVersion(t, addTable))
	wantCode(t, err, fault.Misconfigured)
	for _, part := range []string{"claudeops 0.9.7 serve", fmt.Sprint("process ", pid), "nothing was changed"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	wantEqual(t, versionAt(t, place), older)
	end()
	open(t, place, laterVersion(t, addTable))
	wantEqual(t, versionAt(t, place), 9999)
}

func TestAKilledProcessOfAnOlderVersionDoesNotHoldUpAMigration(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	cmd, _ := holder(t, place, "one")
	kill(t, cmd)
	open(t, place, laterVersion(t, addTable))
}
