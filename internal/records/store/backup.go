package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// partialSuffix is added to the name of a backup that is being written.
const partialSuffix = ".partial"

// Backup makes a new folder, for its owner alone, that can be used as a state folder: with a copy of the database as it
// is at one moment, while others go on reading and writing, and copies of those of the files that are in the state
// folder. The copy of the database is opened and its audit verified before the folder gets its name. With PostgreSQL
// the database is not copied, and the report is empty. copied are the names of the files, the database aside.
//
// Errors: conflict if the folder, or one that a killed backup has left beside it, is there; not_found if the folder
// above it is not.
func (s *Store) Backup(ctx context.Context, folder string, files ...string) (report record.AuditReport, copied []string,
	err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return report, nil, unwritten(err)
	}
	if _, err := os.Lstat(folder); err == nil {
		return report, nil, fault.New(fault.Conflict, "%s is there already; name a folder that does not exist yet", folder)
	}
	var source *sqliteEngine
	if s.db.opts.DatabaseURL == "" {
		c, err := s.db.open(ctx) // first, so that nothing is made where there is nothing to copy
		if err != nil {
			return report, nil, err
		}
		source, _ = c.engine.(*sqliteEngine)
	}
	partial := folder + partialSuffix
	if err := os.Mkdir(partial, dirMode); errors.Is(err, fs.ErrExist) {
		return report, nil, fault.New(fault.Conflict, "%s is there: another backup is being written, or was killed; "+
			"remove it if none is, it holds secrets", partial)
	} else if err != nil {
		return report, nil, unwritten(err)
	}
	defer func() { _ = os.RemoveAll(partial) }() // without effect after the renaming
	if source != nil {
		if report, err = source.copyTo(ctx, partial); err != nil {
			return report, nil, err
		}
	}
	// After the database, so that the key of every mark is there that the copy knows of.
	if copied, err = copyFiles(s.db.dir, partial, append(files, kindName)); err != nil {
		return report, nil, unwritten(err)
	}
	return report, copied, unwritten(errors.Join(syncDir(partial), os.Rename(partial, folder),
		syncDir(filepath.Dir(folder))))
}

// copyTo writes the database to a folder, and reads what was written.
func (e *sqliteEngine) copyTo(ctx context.Context, folder string) (report record.AuditReport, err error) {
	if err := e.checkNotReplaced(); err != nil {
		return report, err
	}
	path := filepath.Join(folder, databaseName)
	if err := createFile(path); err != nil {
		return report, unwritten(err)
	}
	if err := vacuumInto(ctx, e.path, path); err != nil {
		if causeOf(err) == causeFull {
			return report, fault.Wrap(err, fault.Internal, "the disk that holds %s is full; free some space", folder)
		}
		return report, e.asFault(ctx, err)
	}
	written, err := Open(ctx, folder, Options{MustExist: true})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, written.Close(), unwritten(syncFile(path))) }()
	if err := written.Check(ctx); err != nil {
		return report, err
	}
	report, err = written.Audit.Verify(ctx, "")
	if err == nil && !report.OK() {
		err = fault.New(fault.Internal, "the audit is not whole, so no backup was made: %s; run `claudeops audit verify`",
			report.Problem)
	}
	return report, err
}

// vacuumInto copies a database to an empty file, in one read transaction. It has a connection of its own: one that only
// reads may not vacuum, and writers are not to wait for this one.
func vacuumInto(ctx context.Context, from, to string) error {
	db, err := openPool(from, defaultBusyTimeout, true)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", to)
	return errors.Join(err, db.Close())
}

// copyFiles copies those of the files that exist.
func copyFiles(from, to string, names []string) (copied []string, err error) {
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(from, name)) // #nosec G304: names of ours
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path := filepath.Join(to, name)
		if err == nil {
			err = errors.Join(os.WriteFile(path, content, fileMode), syncFile(path))
		}
		if err != nil {
			return copied, err
		}
		copied = append(copied, name)
	}
	return copied, nil
}

// syncFile flushes a file to disk, so that it survives a loss of power. The file must not be open elsewhere.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // #nosec G304: a file of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// unwritten returns the failure to write a backup: not_found or misconfigured if the folder was badly chosen.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	code := fault.Internal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = fault.NotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		code = fault.Misconfigured
	}
	reason := err
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		reason = pathErr.Err
	}
	return fault.Wrap(err, code, "the backup cannot be written: %s", reason)
}
