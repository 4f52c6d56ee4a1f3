package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// prepare makes the database if there is none and brings it up to date, alone among all processes.
func (s stateFolder) prepare(ctx context.Context, opts Options) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	info, err := s.stat()
	if err != nil {
		return err
	}
	if info == nil {
		return s.create(ctx, opts)
	}
	db, err := openPool(s.path, opts.BusyTimeout, true)
	if err != nil {
		return s.asFault(ctx, err)
	}
	state, err := s.checkState(ctx, db)
	if err == nil && state.version < state.newest {
		err = s.mayMigrate(ctx)
	}
	if err == nil && !state.ready() {
		err = s.asFault(ctx, s.migrate(ctx, db))
	}
	if closeErr := db.Close(); err == nil {
		err = s.asFault(ctx, closeErr)
	}
	return err
}

// create makes the database under another name and then gives it its own, so that no one ever sees a half made one.
// Nothing waits for the disk before all of it is written: a draft that a loss of power damages is made anew.
func (s stateFolder) create(ctx context.Context, opts Options) error {
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

// ready reports whether the database can be used as it is.
func (s openState) ready() bool { return s.version == s.newest && s.journal == "wal" }

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
