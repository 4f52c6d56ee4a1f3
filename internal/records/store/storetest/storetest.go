// Package storetest gives tests stores without records. Their tables are made once a process, since making them takes
// longer than most of what is tested, above all under the race detector.
package storetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/records/store"
)

// Template is the database of a store without records. The zero value is ready for use; it is safe for concurrent use.
type Template struct {
	once sync.Once
	name string // of the database's file
	data []byte
	err  error
}

// Put writes the database into the folder, which exists and has none.
func (e *Template) Put(t testing.TB, dir string) {
	t.Helper()
	e.once.Do(func() { e.err = e.make(t) })
	if e.err != nil {
		t.Fatal(e.err)
	}
	if err := os.WriteFile(filepath.Join(dir, e.name), e.data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (e *Template) make(t testing.TB) error {
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	e.name = filepath.Base(s.Path())
	e.data, err = os.ReadFile(s.Path())
	return err
}

// Open opens a store without records in the folder, which does not wait for the disk, and closes it after the test.
func (e *Template) Open(t testing.TB, dir string, o store.Options) *store.Store {
	t.Helper()
	e.Put(t, dir)
	o.NoSync = true
	s, err := store.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
