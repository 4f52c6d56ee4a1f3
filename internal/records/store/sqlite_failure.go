package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// stateFolder is the folder of a database file.
type stateFolder struct {
	dir  string // absolute
	path string // the database file

	migrations fs.FS
}

// What the records may wait for; see fault.Error.WaitsFor.
const (
	WaitsForFolder   = "the folder that holds the state folder"
	WaitsForRoom     = "room on the disk of the state folder"
	WaitsForDisk     = "the disk of the state folder, which cannot be written"
	waitsForDatabase = "the database"
)

// asFault makes faults of errors of SQLite and of the file system.
func (s stateFolder) asFault(ctx context.Context, err error) error {
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
		return again(err, "the database in the state folder %s stayed locked; "+
			"stop the program that holds it, or try again when it is done", s.dir)
	case causeCorrupt:
		return internal("the database %s is damaged; run `claudeops audit verify` and restore a backup", s.path)
	case causeForeign:
		return internal("the file %s is not a database; move it away, or restore a backup over it", s.path)
	case causeFull:
		return fault.Wrap(err, fault.Internal, "the disk that holds the state folder %s is full; free some space", s.dir).
			Awaits(WaitsForRoom)
	case causeReadOnly, causeUnopenable:
		return s.unwritable(err)
	case causeIO:
		return fault.Wrap(err, fault.Internal, "reading or writing the database in the state folder %s failed; check the disk",
			s.dir).Awaits(WaitsForDisk)
	}
	return s.fileFault(err)
}

// fileFault is asFault for errors of the file system.
func (s stateFolder) fileFault(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.Internal, "the disk that holds the state folder %s is full; free some space", s.dir).
			Awaits(WaitsForRoom)
	case errors.Is(err, syscall.ENOTDIR):
		return fault.Wrap(err, fault.Misconfigured, "the state folder %s, or a folder above it, is a file; "+
			"move it away, or name another folder with CLAUDEOPS_STATE_DIR", s.dir)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.Misconfigured, "the folder that should hold the state folder %s does not exist; "+
			"create it, or name another folder with CLAUDEOPS_STATE_DIR", s.dir).Awaits(WaitsForFolder)
	case errors.Is(err, syscall.EROFS):
		return fault.Wrap(err, fault.Misconfigured, "the file system of the state folder %s is read-only; look at the disk, "+
			"or name another folder with CLAUDEOPS_STATE_DIR", s.dir).Awaits(WaitsForDisk)
	case errors.Is(err, fs.ErrPermission):
		return s.unwritable(err)
	}
	return fault.Wrap(err, fault.Internal, "the database in the state folder %s failed; the log has the details", s.dir)
}

func (s stateFolder) unwritable(err error) error {
	return fault.Wrap(err, fault.Misconfigured, "the state folder %s cannot be written; "+
		"give the user that runs claudeops write permission on it and on the files in it", s.dir)
}
