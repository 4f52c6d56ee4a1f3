//go:build !postgres

package store

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

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
			if err := os.Mkdir(filepath.Join(dir, databaseName), 0o700); err != nil {
				t.Fatal(err)
			}
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
	wantCode(t, err, fault.Timeout)
	if !strings.Contains(err.Error(), "stayed locked") {
		t.Errorf("got %v", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = Open(ctx, dir, Options{BusyTimeout: time.Hour})
	wantCode(t, err, fault.Timeout)
}
