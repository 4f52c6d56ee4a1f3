package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// Copied is what CopyTo has written.
type Copied struct {
	Schema int64              // version of the tables
	Audit  record.AuditReport // of the copy
}

// CopyTo writes the database as it is at one moment to a new file that only its owner can read, while others go on reading
// and writing. The copy is complete and on disk when the call returns, and was read again: structure, references, the whole
// audit. A file that exists is conflict; a copy that is not sound is invalid_argument, and is removed. PostgreSQL, which has
// tools of its own for this, is invalid_argument.
func (s *Store) CopyTo(ctx context.Context, path string) (Copied, error) {
	e, ok := s.engine.(*sqliteEngine)
	if !ok {
		return Copied{}, fault.New(fault.InvalidArgument, "records in PostgreSQL are backed up with pg_dump and restored with pg_restore")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Copied{}, err
	}
	if err := e.stillThere(); err != nil {
		return Copied{}, err
	}
	if err := createFile(path); err != nil {
		if errors.Is(err, os.ErrExist) {
			return Copied{}, fault.New(fault.Conflict, "%s is there already", path)
		}
		return Copied{}, fault.Wrap(err, fault.Internal, "the copy of the records cannot be written: %s", FileReason(err))
	}
	copied, err := e.copyTo(ctx, path)
	if err != nil {
		_ = os.Remove(path)
		return Copied{}, s.fail(ctx, err)
	}
	return copied, nil
}

func (e *sqliteEngine) copyTo(ctx context.Context, path string) (Copied, error) {
	db, err := openPool(e.path, e.busy, true) // a connection that only reads may not vacuum, and the writer is not to wait for this
	if err != nil {
		return Copied{}, err
	}
	if err := errors.Join(vacuumInto(ctx, db, path), db.Close()); err != nil {
		if causeOf(err) == causeFull {
			return Copied{}, fault.Wrap(err, fault.Internal, "the disk that holds %s is full; free some space", path)
		}
		return Copied{}, err
	}
	if err := syncFile(path); err != nil {
		return Copied{}, fault.Wrap(err, fault.Internal, "the copy of the records cannot be written: %s", FileReason(err))
	}
	found, err := inspect(ctx, path, "the copy of the records", "")
	return Copied{Schema: found.schema, Audit: found.report}, err
}

// vacuumInto copies the database to an empty file, in one read transaction.
func vacuumInto(ctx context.Context, db *sql.DB, path string) error {
	_, err := db.ExecContext(ctx, "VACUUM INTO $1", path)
	return err
}

// syncFile makes a file that nobody has open last through a loss of power.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// FileReason is what went wrong with a file, without its name.
func FileReason(err error) error {
	var pathErr *os.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}

// CopyTo is Store.CopyTo.
func (l *Lazy) CopyTo(ctx context.Context, path string) (Copied, error) {
	return get(ctx, l, func(s *Store) (Copied, error) { return s.CopyTo(ctx, path) })
}
