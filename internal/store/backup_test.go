//go:build !postgres

package store

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
)

func TestACopyHoldsWhatWasThereWhileOthersWrite(t *testing.T) {
	ctx, s := context.Background(), openNew(t)
	recordAttempts(t, s, attempt("1"))
	reserve(t, s, proposal("held", "checks/a.md"), 0)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				err = s.Record(ctx, attempt("more"), nil)
			}
		}
		stopped <- err
	}()
	dir := t.TempDir()
	for _, name := range []string{"a.db", "b.db", "c.db"} {
		c, err := s.CopyTo(ctx, filepath.Join(dir, name))
		wantEqual(t, err, nil)
		if !c.Audit.OK() || c.Audit.Rows < 1 {
			t.Errorf("got %+v", c)
		}
		info, err := os.Stat(filepath.Join(dir, name))
		wantEqual(t, err, nil)
		wantEqual(t, info.Mode().Perm(), fs.FileMode(0o600))
	}
	close(stop)
	wantEqual(t, <-stopped, nil)
}

func TestACopyIsNotWrittenOverAnything(t *testing.T) {
	s := openNew(t)
	path := write(t, t.TempDir(), "there", "kept")
	_, err := s.CopyTo(context.Background(), path)
	wantCode(t, err, fault.Conflict)
	wantEqual(t, content(t, path), "kept")
	_, err = s.CopyTo(context.Background(), filepath.Join(path, "below", "a file"))
	wantCode(t, err, fault.Internal)
}

func TestACopyOfAnAuditThatIsNotWholeIsRefused(t *testing.T) {
	s := openNew(t)
	recordAttempts(t, s, attempt("1"), attempt("2"))
	db := raw(t, s)
	mustExec(t, db, dropGuards()...)
	mustExec(t, db, "UPDATE audit SET caller = 'x' WHERE seq = 1")
	path := filepath.Join(t.TempDir(), "copy.db")
	_, err := s.CopyTo(context.Background(), path)
	wantCode(t, err, fault.InvalidArgument)
	wantEqual(t, content(t, path), "")
}
