package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/claudeops/claudeops/internal/fault"
)

// place is where a database lives.
type place struct {
	dir  string // absolute
	path string // the database file
}

// fail is engine.fail, for errors of SQLite and of the file system.
func (p place) fail(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return fault.From(err)
	}
	internal := func(format string, args ...any) error { return fault.Wrap(err, fault.Internal, format, args...) }
	switch causeOf(err) {
	case causeInterrupted:
		if ctx.Err() != nil {
			return fault.From(ctx.Err())
		}
	case causeBusy:
		return internal("the database in the state folder %s stayed locked; "+
			"stop the program that holds it, or try again when it is done", p.dir)
	case causeCorrupt:
		return internal("the database %s is damaged; run `claudeops audit verify` and restore a backup", p.path)
	case causeForeign:
		return internal("the file %s is not a database; move it away, or restore a backup over it", p.path)
	case causeFull:
		return internal("the disk that holds the state folder %s is full; free some space", p.dir)
	case causeReadOnly, causeUnopenable:
		return p.unwritable(err)
	case causeIO:
		return internal("reading or writing the database in the state folder %s failed; check the disk", p.dir)
	}
	return p.failFile(err)
}

// failFile is fail for errors of the file system.
func (p place) failFile(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.Internal, "the disk that holds the state folder %s is full; free some space", p.dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fault.Wrap(err, fault.Misconfigured, "the state folder %s, or a folder above it, is a file; "+
			"move it away, or name another folder with CLAUDEOPS_STATE_DIR", p.dir)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.Misconfigured, "the folder that should hold the state folder %s does not exist; "+
			"create it, or name another folder with CLAUDEOPS_STATE_DIR", p.dir)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return p.unwritable(err)
	}
	return fault.Wrap(err, fault.Internal, "the database in the state folder %s failed; the log has the details", p.dir)
}

func (p place) unwritable(err error) error {
	return fault.Wrap(err, fault.Misconfigured, "the state folder %s cannot be written; "+
		"give the user that runs claudeops write permission on it and on the files in it", p.dir)
}
