package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// The kinds of databases, as Options.Kind and the file kindName say them.
const (
	KindSQLite     = "sqlite"
	KindPostgreSQL = "postgresql"
	kindName       = "records" // in the state folder; it is there once the folder has had PostgreSQL
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

// kindOf returns the last kind of database of a state folder; "" if it had none.
func kindOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, kindName)) // #nosec G304: a file of ours
	switch {
	case err == nil:
		return strings.TrimSpace(string(text)), nil
	case dir == "" || errors.Is(err, syscall.ENOTDIR):
		return "", nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", stateFolder{dir: dir}.fileFault(err)
	}
	if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
		return "", nil
	}
	return KindSQLite, nil
}

// checkKind refuses a database of another kind than the state folder had last, unless the operator names it. was is the
// kind that it had.
func (d *database) checkKind() (was string, err error) {
	kind := d.kind()
	if d.opts.Kind != "" && d.opts.Kind != kind {
		return "", fault.New(fault.Misconfigured, "CLAUDEOPS_RECORDS is %+q, and these settings have the records in %s: "+
			"make it sqlite or postgresql, and set CLAUDEOPS_DATABASE_URL for postgresql alone", bound(d.opts.Kind, maxWord), kind)
	}
	was, err = kindOf(d.dir)
	if err != nil || was == "" || was == kind || d.opts.Kind == kind {
		return was, err
	}
	settings := "CLAUDEOPS_DATABASE_URL is not set"
	if kind == KindPostgreSQL {
		settings = "CLAUDEOPS_DATABASE_URL names a PostgreSQL database"
	}
	return was, fault.New(fault.Misconfigured, "the records of the state folder %s are in %s, and %s: correct that, or set "+
		"CLAUDEOPS_RECORDS=%s to leave those records behind and go on without them", d.dir, was, settings, kind)
}

func (d *database) kind() string {
	if d.opts.DatabaseURL != "" {
		return KindPostgreSQL
	}
	return KindSQLite
}

// noteKind keeps the kind in the state folder, where there is one and it can be written: a process with PostgreSQL may
// need none.
func (d *database) noteKind(was string) {
	kind := d.kind()
	if d.dir == "" || was == kind || was == "" && kind == KindSQLite {
		return
	}
	path := filepath.Join(d.dir, kindName)
	draft := path + draftSuffix + d.opts.NewID()
	if err := errors.Join(os.WriteFile(draft, []byte(kind+"\n"), fileMode), os.Rename(draft, path)); err != nil {
		_ = os.Remove(draft)
	}
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
