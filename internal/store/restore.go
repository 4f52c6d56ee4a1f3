package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// A restore is prepared beside the records: restore.new becomes restore.ready, in one renaming, once everything in it was
// found sound and is on disk. That decides it. What then has to be moved is moved by whoever comes first, this process or
// the next one that opens the records; see restore_install.go.

// RestoreOptions say how records are restored. Options.DatabaseURL and MustExist are not used.
type RestoreOptions struct {
	Options
	// Replace moves records that exist aside; without it they are conflict.
	Replace bool
	// ExpectHead must be in the chain of the backup; see Store.VerifyAudit. "" asks for nothing.
	ExpectHead string
	// Row is the row of the audit that says what was restored.
	Row func(record.AuditReport) record.Attempt
}

// Restored is what a restore has brought.
type Restored struct {
	Schema int64              // version of the tables in the backup; they are of this program's version now
	Audit  record.AuditReport // of the backup, before the row of the restore
	Aside  string             // folder that the former records were moved to; "" if there were none
}

// Restore makes what unpack puts into a folder, a database of that name and other files of the state folder, the records in
// dir. Until all of it was found sound nothing changes: a database of a newer program or another one, damage, an audit that
// is not whole or lacks the expected head are invalid_argument; records or other files that are there, and a process that
// uses the folder, are conflict. Killed at any moment, it leaves the former records or the new ones.
func Restore(ctx context.Context, dir string, opts RestoreOptions, unpack func(folder string) error) (Restored, error) {
	opts.Options = opts.withDefaults()
	abs, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return Restored{}, fault.Wrap(err, fault.Misconfigured, "no state folder is configured; name one with CLAUDEOPS_STATE_DIR")
	}
	p := place{dir: abs, path: filepath.Join(abs, databaseName)}
	release, err := p.takeOver(ctx, opts)
	if err != nil {
		return Restored{}, err
	}
	defer release()
	if err := p.mayReplace(opts.Replace); err != nil {
		return Restored{}, err
	}
	draft := p.in(restoreDraft)
	defer func() { _ = os.RemoveAll(draft) }() // of what was decided nothing is left here
	if err := errors.Join(os.RemoveAll(draft), os.Mkdir(draft, dirMode)); err != nil {
		return Restored{}, p.failFile(err)
	}
	if err := unpack(draft); err != nil {
		return Restored{}, err
	}
	restored, err := p.prove(ctx, opts)
	if err != nil {
		return Restored{}, p.fail(ctx, err)
	}
	if err := p.decide(opts.Now()); err != nil {
		return Restored{}, p.failFile(err)
	}
	restored.Aside, err = p.install()
	return restored, err
}

// takeOver makes the folder if need be and keeps everybody else out of it until release is called.
func (p place) takeOver(ctx context.Context, opts RestoreOptions) (release func(), err error) {
	if err := p.makeDir(opts.MakeParents); err != nil {
		return nil, err
	}
	if err := ownFolder(p.dir); err != nil {
		return nil, err
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	use, err := p.aloneInUse()
	if err != nil {
		unlock()
		return nil, err
	}
	release = func() {
		_ = use.Close()
		unlock()
	}
	if _, err := p.install(); err != nil { // what an earlier one has decided
		release()
		return nil, err
	}
	return release, nil
}

// mayReplace refuses to touch records that exist, unless that is what was asked for.
func (p place) mayReplace(replace bool) error {
	for _, name := range databaseFiles() {
		info, err := os.Lstat(p.in(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return p.failFile(err)
		case !info.Mode().IsRegular():
			return fault.New(fault.Conflict, "%s is no plain file; move it away, or name another state folder with CLAUDEOPS_STATE_DIR",
				p.in(name))
		case !replace:
			return fault.New(fault.Conflict, "there are records in the state folder %s; name another one with CLAUDEOPS_STATE_DIR, "+
				"or move them aside with --replace", p.dir)
		}
	}
	return nil
}

// prove reads what was unpacked, brings it up to date, and adds the row of the restore.
func (p place) prove(ctx context.Context, opts RestoreOptions) (Restored, error) {
	const what = "the backup"
	draft := place{dir: p.in(restoreDraft), path: filepath.Join(p.in(restoreDraft), databaseName)}
	names, err := plainFiles(draft.dir)
	if err != nil {
		return Restored{}, err
	}
	found, err := inspect(ctx, draft.path, what, opts.ExpectHead)
	if err != nil {
		return Restored{}, err
	}
	if err := p.sameOthers(names, opts.Replace); err != nil {
		return Restored{}, err
	}
	if err := draft.prepare(ctx, opts.Options); err != nil {
		return Restored{}, err
	}
	if err := sameTables(ctx, draft.path, draft.dir, what); err != nil {
		return Restored{}, err
	}
	if err := draft.addRow(ctx, opts, opts.Row(found.report)); err != nil {
		return Restored{}, err
	}
	return Restored{Schema: found.schema, Audit: found.report}, draft.keepOnly(names)
}

// addRow records the attempt in the draft, as any process does.
func (p place) addRow(ctx context.Context, opts RestoreOptions, row record.Attempt) error {
	s, err := Open(ctx, p.dir, Options{Now: opts.Now, NewID: opts.NewID, BusyTimeout: opts.BusyTimeout})
	if err != nil {
		return err
	}
	return errors.Join(s.Record(ctx, row, nil), s.Close())
}

// decide puts the draft in force. The folder that former records will be moved to is written down in it.
func (p place) decide(now time.Time) error {
	aside, err := p.freeName("replaced-" + now.UTC().Format("20060102T150405Z"))
	if err != nil {
		return err
	}
	draft := p.in(restoreDraft)
	if err := os.WriteFile(filepath.Join(draft, asideName), []byte(aside), fileMode); err != nil {
		return err
	}
	entries, err := os.ReadDir(draft)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(draft, entry.Name())
		if err := errors.Join(os.Chmod(path, fileMode), syncFile(path)); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(draft), os.Rename(draft, p.in(restoreReady)), syncDir(p.dir))
}
