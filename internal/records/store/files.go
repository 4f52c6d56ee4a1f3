package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/filelock"
)

// Names of the files in the state folder. SQLite adds -wal and -shm to the first, with its permissions.
const (
	databaseName = "claudeops.db"
	lockName     = "claudeops.lock"
	draftSuffix  = ".new" // of a database that is being made
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// makeDir makes the state folder, whatever the umask. A folder that exists keeps its permissions.
func (s stateFolder) makeDir(withParents bool) error {
	if withParents {
		if err := os.MkdirAll(filepath.Dir(s.dir), dirMode); err != nil {
			return s.fileFault(err)
		}
	}
	switch err := os.Mkdir(s.dir, dirMode); {
	case err == nil:
		if err := os.Chmod(s.dir, dirMode); err != nil {
			return s.fileFault(err)
		}
		return nil
	case !errors.Is(err, fs.ErrExist):
		return s.fileFault(err)
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return s.fileFault(err)
	}
	if !info.IsDir() {
		return s.fileFault(syscall.ENOTDIR)
	}
	return nil
}

// stat returns what is known of the database file, nil if there is none. Anything there that is not a plain file of
// some size is refused: a database is complete before it gets its name, so an empty one has lost its content.
func (s stateFolder) stat() (fs.FileInfo, error) {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, s.fileFault(err)
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Misconfigured,
			"%s is not a file; move it away, or name another state folder with CLAUDEOPS_STATE_DIR", s.path)
	case info.Size() == 0:
		return nil, fault.New(fault.Internal, "the database %s is empty although it never should be; "+
			"restore a backup over it, or move it away to start anew", s.path)
	}
	return info, nil
}

// createFile makes an empty file that only we can read, whatever the umask. It never opens one that exists: closing it
// again would drop the locks that SQLite holds on it in this process (POSIX record locks).
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(fileMode), f.Close())
}

const (
	lockPoll  = 10 * time.Millisecond
	lockTries = 6000 // a minute
)

// lock takes the lock that one process at a time holds to make or migrate the database.
func (s stateFolder) lock(ctx context.Context) (unlock func(), err error) {
	name := filepath.Join(s.dir, lockName)
	if err := createFile(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, s.fileFault(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, s.fileFault(err)
	}
	if err := s.waitForLock(ctx, f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

func (s stateFolder) waitForLock(ctx context.Context, f *os.File) error {
	for range lockTries {
		taken, err := filelock.Try(f, true)
		if err != nil {
			return s.fileFault(err)
		}
		if taken {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.From(ctx.Err())
		case <-time.After(lockPoll):
		}
	}
	return fault.New(fault.Internal, "another claudeops has been preparing the state folder %s for a minute; "+
		"stop it, or try again when it is done", s.dir)
}
