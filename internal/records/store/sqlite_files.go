package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
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
		return temporaryFault(err, "the database in the state folder %s stayed locked; "+
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

// databaseKind returns the last kind of database of a state folder; "" if it had none.
func databaseKind(dir string) (string, error) {
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
	kind := d.engineKind()
	if d.opts.Kind != "" && d.opts.Kind != kind {
		return "", fault.New(fault.Misconfigured, "CLAUDEOPS_RECORDS is %+q, and these settings have the records in %s: "+
			"make it sqlite or postgresql, and set CLAUDEOPS_DATABASE_URL for postgresql alone", bound(d.opts.Kind, maxWord), kind)
	}
	was, err = databaseKind(d.dir)
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

func (d *database) engineKind() string {
	if d.opts.DatabaseURL != "" {
		return KindPostgreSQL
	}
	return KindSQLite
}

// noteKind keeps the kind in the state folder, where there is one and it can be written: a process with PostgreSQL may
// need none.
func (d *database) noteKind(was string) {
	kind := d.engineKind()
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

// lockTime is how long another process that makes or migrates the database is waited for.
const lockTime = time.Minute

// lockDatabase takes the lock that one process at a time holds to make or migrate the database.
func (s stateFolder) lockDatabase(ctx context.Context) (unlock func(), err error) {
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
	limited, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	switch err := files.Lock(limited, f, true); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.From(ctx.Err())
	case limited.Err() != nil:
		return fault.New(fault.Internal, "another claudeops has been preparing the state folder %s for a minute; "+
			"stop it, or try again when it is done", s.dir)
	default:
		return s.fileFault(err)
	}
}

// prepare makes the database if there is none and brings it up to date, alone among all processes.
func (s stateFolder) prepare(ctx context.Context, opts Options) error {
	unlock, err := s.lockDatabase(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	info, err := s.stat()
	if err != nil {
		return err
	}
	if info == nil {
		return s.createDatabase(ctx, opts)
	}
	db, err := openPool(s.path, opts.BusyTimeout, true)
	if err != nil {
		return s.asFault(ctx, err)
	}
	state, err := s.checkState(ctx, db)
	if err == nil && state.version < state.newest {
		err = s.mayMigrate(ctx)
	}
	if err == nil && !state.isReady() {
		err = s.asFault(ctx, s.migrate(ctx, db))
	}
	if closeErr := db.Close(); err == nil {
		err = s.asFault(ctx, closeErr)
	}
	return err
}

// createDatabase makes the database under another name and then gives it its own, so that no one ever sees a half made
// one. Nothing waits for the disk before all of it is written: a draft that a loss of power damages is made anew.
func (s stateFolder) createDatabase(ctx context.Context, opts Options) error {
	if _, err := os.Stat(s.path + "-wal"); err == nil {
		return fault.New(fault.Internal, "the database %[1]s is gone but its journal %[1]s-wal is still there; "+
			"restore a backup, or move the journal away to start anew", s.path)
	}
	draft := s.path + draftSuffix
	removeDraft := func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(draft + suffix)
		}
	}
	removeDraft() // what a killed process may have left
	defer removeDraft()
	if err := createFile(draft); err != nil {
		return s.fileFault(err)
	}
	// Pages that are free can be given back to the disk; see Retention. It has to be said before the first table is made.
	db, err := openPool(draft, opts.BusyTimeout, true, "auto_vacuum(INCREMENTAL)", "synchronous(OFF)",
		"journal_mode(MEMORY)")
	if err != nil {
		return s.asFault(ctx, err)
	}
	if err := errors.Join(s.migrate(ctx, db), db.Close()); err != nil {
		return s.asFault(ctx, err)
	}
	if err := syncFile(draft); err != nil {
		return s.fileFault(err)
	}
	if err := errors.Join(os.Rename(draft, s.path), syncDir(s.dir)); err != nil {
		return s.fileFault(err)
	}
	return nil
}

// migrate applies what is missing.
func (s stateFolder) migrate(ctx context.Context, db *sql.DB) error {
	sub, err := fs.Sub(s.migrations, sqliteMigrations)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, sub,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	current, newest, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > newest {
		return s.newer(current, newest)
	}
	if first := provider.ListSources()[0].Version; current > 0 && current < first {
		return unreleased("database "+s.path, current, first, "state folder with CLAUDEOPS_STATE_DIR")
	}
	if _, err := provider.Up(ctx); err != nil {
		return err
	}
	return writeState(ctx, db, newest)
}

func (s stateFolder) newer(version, newest int64) error {
	return fault.New(fault.Misconfigured,
		"the database %s was written by a newer claudeops (schema %d, this one knows %d); "+
			"run that version, or name another state folder with CLAUDEOPS_STATE_DIR", s.path, version, newest)
}

// openState compares a database with what this program needs.
type openState struct {
	fileState
	newest int64
}

// isReady reports whether the database can be used as it is.
func (s openState) isReady() bool { return s.version == s.newest && s.journal == "wal" }

// checkState refuses a database that is not ours or of a newer program.
func (s stateFolder) checkState(ctx context.Context, db *sql.DB) (openState, error) {
	newest, err := newestVersion(s.migrations, sqliteMigrations)
	if err != nil {
		return openState{}, s.asFault(ctx, err)
	}
	state, err := readState(ctx, db)
	switch {
	case err != nil:
		return openState{}, s.asFault(ctx, err)
	case state.application != applicationID:
		return openState{}, fault.New(fault.Misconfigured, "the database %s belongs to another program; "+
			"name another state folder with CLAUDEOPS_STATE_DIR", s.path)
	case state.version > newest:
		return openState{}, s.newer(state.version, newest)
	}
	return openState{state, newest}, nil
}
