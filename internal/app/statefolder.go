package app

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/files"
)

// stateFolder is the folder of records, locks and keys.
type stateFolder struct {
	path    string // "" if this process needs none
	parents bool   // the folders above it may be made, too
}

// stateFolderOf returns the folder that a server needs. With PostgreSQL and a configured key it keeps nothing there but
// sessions.
func stateFolderOf(c config.Config) stateFolder {
	if c.Records.DatabaseURL != "" && c.Records.MarkKey != "" && c.Sessions.Schedule.Interval == 0 {
		return stateFolder{}
	}
	return stateFolder{c.Records.Dir, c.Records.DirDefault}
}

// writable tries to write a file in the folder, which it makes if it is missing: with PostgreSQL the records do not.
// misconfigured, saying what to do, if that fails.
func (s stateFolder) writable() error {
	if s.path == "" {
		return nil
	}
	const block = 4 << 10 // less may fit into a disk that is full
	folder, err := files.MakeTemporary(s.path, ".writable-")
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.make(); err == nil {
			folder, err = files.MakeTemporary(s.path, ".writable-")
		}
	}
	if err != nil {
		return s.unusable(err)
	}
	_, err = folder.Write("block", make([]byte, block))
	if err = errors.Join(err, folder.Remove()); err != nil {
		return s.unusable(err)
	}
	return nil
}

func (s stateFolder) make() error {
	const private = 0o700
	if s.parents {
		if err := files.MkdirAll(filepath.Dir(s.path), private); err != nil {
			return err
		}
	}
	err := files.Mkdir(s.path, private)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s stateFolder) unusable(err error) error {
	what := "cannot be written: give this user write permission on it, or name another one with CLAUDEOPS_STATE_DIR"
	waitsFor := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		waitsFor = store.WaitsForFolder
		what = "cannot be made: the folder above it does not exist. Make that, or name another one with CLAUDEOPS_STATE_DIR"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		waitsFor = store.WaitsForRoom
		what = "cannot be written: its disk is full. Make room on it, or name another one with CLAUDEOPS_STATE_DIR"
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		waitsFor = store.WaitsForDisk
		what = "cannot be written: its file system is read-only or fails. Look at the disk, or name another one with " +
			"CLAUDEOPS_STATE_DIR"
	}
	return fault.Wrap(err, fault.Misconfigured, "the state folder %s %s", s.path, what).Awaits(waitsFor)
}

// servedRecords are the records as a server's readiness sees them: what cannot be written is as good as gone.
type servedRecords struct {
	*store.History
	store  *store.Store
	folder stateFolder
}

// Ping reports whether the records can be read, and files written beside them.
func (r servedRecords) Ping(ctx context.Context) error {
	if err := r.store.Ping(ctx); err != nil {
		return err
	}
	return r.folder.writable()
}

// roundRecords implements prflow.RoundRecords.
type roundRecords struct {
	*store.Rounds
	*store.History
}

// NewRounds makes what looks at open pull requests again and again.
func (p *Parts) NewRounds() *prflow.Rounds {
	return prflow.NewRounds(p.Flow, roundRecords{p.Store.Rounds, p.Store.History})
}
