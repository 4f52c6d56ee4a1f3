//go:build !postgres

package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
)

// TestAKilledRestoreLeavesTheOldRecordsOrTheNewOnes goes through the folder as each step of a restore leaves it.
func TestAKilledRestoreLeavesTheOldRecordsOrTheNewOnes(t *testing.T) {
	path, _ := copied(t, "new")
	errKilled := errors.New("killed")
	t.Run("while it unpacks", func(t *testing.T) {
		dir := closedRecords(t, "old")
		draft := filepath.Join(dir, restoreDraft)
		wantEqual(t, os.Mkdir(draft, 0o700), nil)
		write(t, draft, databaseName, "half")
		wantEqual(t, rowsIn(t, dir), "old")
		_, err := restoreInto(t, dir, path, "new key", replacing) // and is no hindrance
		wantEqual(t, err, nil)
		_, err = os.Stat(draft)
		wantEqual(t, errors.Is(err, fs.ErrNotExist), true)
	})
	steps := []func(p place) error{
		func(place) error { return nil },
		func(p place) error { return os.Mkdir(p.in("replaced"), 0o700) },
		func(p place) error { return os.Rename(p.in("mark.key"), filepath.Join(p.in("replaced"), "mark.key")) },
		func(p place) error { return os.Rename(filepath.Join(p.in(restoreReady), "mark.key"), p.in("mark.key")) },
		func(p place) error {
			return os.Rename(p.in(databaseName+"-wal"), filepath.Join(p.in("replaced"), databaseName+"-wal"))
		},
		func(p place) error { return os.Rename(p.path, filepath.Join(p.in("replaced"), databaseName)) },
		func(p place) error { return os.Rename(filepath.Join(p.in(restoreReady), databaseName), p.path) },
		func(p place) error { return os.Remove(filepath.Join(p.in(restoreReady), asideName)) },
		func(p place) error { return os.Remove(p.in(restoreReady)) },
	}
	for killed := range steps {
		dir := closedRecords(t, "old")
		p := place{dir: dir, path: filepath.Join(dir, databaseName)}
		write(t, dir, databaseName+"-wal", "journal of the old database")
		ready := p.in(restoreReady)
		wantEqual(t, os.Mkdir(ready, 0o700), nil)
		write(t, ready, databaseName, content(t, path))
		write(t, ready, "mark.key", "new key")
		write(t, ready, asideName, "replaced")
		for _, step := range steps[:killed+1] {
			if err := step(p); err != nil {
				t.Fatalf("step %d: %v", killed, errors.Join(errKilled, err))
			}
		}
		wantEqual(t, FinishRestore(context.Background(), dir), nil) // what whoever reads the key does
		wantEqual(t, content(t, filepath.Join(dir, "mark.key")), "new key")
		wantEqual(t, rowsIn(t, dir), "new")
		wantEqual(t, content(t, filepath.Join(dir, "replaced", "mark.key")), "old key")
		wantEqual(t, content(t, filepath.Join(dir, "replaced", databaseName+"-wal")), "journal of the old database")
		_, err := os.Stat(ready)
		wantEqual(t, errors.Is(err, fs.ErrNotExist), true)
	}
}

func TestADecisionThatCannotBeReadIsNotPassedOver(t *testing.T) {
	for name, aside := range map[string]string{"a path": "../elsewhere", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			dir := closedRecords(t, "old")
			ready := filepath.Join(dir, restoreReady)
			wantEqual(t, os.Mkdir(ready, 0o700), nil)
			write(t, ready, asideName, aside)
			write(t, ready, databaseName, "new")
			_, err := Open(context.Background(), dir, Options{})
			wantCode(t, err, fault.Internal)
			wantEqual(t, content(t, filepath.Join(ready, databaseName)), "new")
		})
	}
}
