//go:build !postgres

package store

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// overwrite puts n bytes of rubbish at the offset.
func overwrite(t testing.TB, path string, offset int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, n), offset); err != nil {
		t.Fatal(err)
	}
}

// snapshot is the content of the database file in dir.
func snapshot(dir string) []byte {
	b, err := os.ReadFile(filepath.Join(dir, databaseName))
	if err != nil {
		return nil
	}
	return b
}

func rawFile(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// change makes a database in dir and runs the statements on it as another program would.
func change(t testing.TB, dir string, statements ...string) {
	t.Helper()
	s := open(t, dir, Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := rawFile(t, s.Path())
	mustExec(t, db, statements...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
