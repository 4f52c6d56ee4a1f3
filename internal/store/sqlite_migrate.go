package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"

	"github.com/claudeops/claudeops/internal/fault"
)

// prepare makes the database if there is none and brings it up to date, alone among all processes.
func (p place) prepare(ctx context.Context, opts Options) error {
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	info, err := p.look()
	if err != nil {
		return err
	}
	if info == nil {
		return p.create(ctx, opts)
	}
	db, err := openPool(p.path, opts.BusyTimeout, true)
	if err != nil {
		return p.fail(ctx, err)
	}
	state, err := p.checkState(ctx, db)
	if err == nil && !state.ready() {
		err = p.fail(ctx, p.migrate(ctx, db))
	}
	if closeErr := db.Close(); err == nil {
		err = p.fail(ctx, closeErr)
	}
	return err
}

// create makes the database under another name and then gives it its own, so that no one ever sees a half made one.
func (p place) create(ctx context.Context, opts Options) error {
	if _, err := os.Stat(p.path + "-wal"); err == nil {
		return fault.New(fault.Internal, "the database %[1]s is gone but its journal %[1]s-wal is still there; "+
			"restore a backup, or move the journal away to start anew", p.path)
	}
	draft := p.path + draftSuffix
	removeDraft := func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(draft + suffix)
		}
	}
	removeDraft() // what a killed process may have left
	defer removeDraft()
	if err := createFile(draft); err != nil {
		return p.failFile(err)
	}
	db, err := openPool(draft, opts.BusyTimeout, true)
	if err != nil {
		return p.fail(ctx, err)
	}
	if err := errors.Join(p.migrate(ctx, db), db.Close()); err != nil {
		return p.fail(ctx, err)
	}
	if err := errors.Join(os.Rename(draft, p.path), syncDir(p.dir)); err != nil {
		return p.failFile(err)
	}
	return nil
}

// migrate applies what is missing.
func (p place) migrate(ctx context.Context, db *sql.DB) error {
	sub, err := fs.Sub(migrations, sqliteMigrations)
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
		return p.newer(current, newest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return err
	}
	return stamp(ctx, db, newest)
}

func (p place) newer(version, newest int64) error {
	return fault.New(fault.Misconfigured, "the database %s was written by a newer claudeops (schema %d, this one knows %d); "+
		"run that version, or name another state folder with CLAUDEOPS_STATE_DIR", p.path, version, newest)
}

// openState compares a database with what this program needs.
type openState struct {
	fileState
	newest int64
}

// ready reports whether the database can be used as it is.
func (s openState) ready() bool { return s.version == s.newest && s.journal == "wal" }

// checkState refuses a database that is not ours or of a newer program.
func (p place) checkState(ctx context.Context, db *sql.DB) (openState, error) {
	newest, err := newestVersion(sqliteMigrations)
	if err != nil {
		return openState{}, p.fail(ctx, err)
	}
	state, err := readState(ctx, db)
	switch {
	case err != nil:
		return openState{}, p.fail(ctx, err)
	case state.application != applicationID:
		return openState{}, fault.New(fault.Misconfigured, "the database %s belongs to another program; "+
			"name another state folder with CLAUDEOPS_STATE_DIR", p.path)
	case state.version > newest:
		return openState{}, p.newer(state.version, newest)
	}
	return openState{state, newest}, nil
}
