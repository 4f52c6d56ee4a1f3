package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/system/files"
)

// locks tell the processes that share a database which work is still in progress. A process that works on a proposal,
// or runs a session of an agent, holds a lock, whose name is recorded with the work. The lock ends when it is released,
// and with the process, however that ends; see docs/adr/0013-locks-not-leases.md.
type locks interface {
	// acquire takes a new lock and returns its name.
	acquire(ctx context.Context) (name string, err error)

	// release gives a lock back. Releasing one that is not held is not an error.
	release(name string)

	// released reports which of the locks are not held any more. One that this store holds is never among them, even if
	// the database lost it: then other processes may take the work over, and this store finds a conflict.
	released(ctx context.Context, names []string) (map[string]bool, error)

	// ready reports why nothing may be written now: what tells others that this process works was lost, and could not be
	// had again.
	ready(ctx context.Context) error

	// usable reports why the records may not be used any more.
	usable() error

	// close releases all.
	close() error
}

// heldLocks remembers under which lock this store has recorded what it works on, by the id of the proposal or session.
type heldLocks struct {
	db *database

	mu    sync.Mutex
	names map[string]string // also of work that was given up unfinished: a process that takes it over records another name
}

func newHeldLocks(d *database) *heldLocks { return &heldLocks{db: d, names: map[string]string{}} }

// acquireAndRecord calls record with the name of a new lock. If record reports that the work is recorded under that
// name, the lock is held until release. Otherwise it is released at once, also after an error: should the work be
// recorded after all, others may settle it.
func (h *heldLocks) acquireAndRecord(ctx context.Context, id string, record func(lock string) (recorded bool,
	err error)) error {
	lock, err := h.db.acquireLock(ctx)
	if err != nil {
		return err
	}
	recorded, err := record(lock)
	if err != nil || !recorded {
		h.db.releaseLock(lock)
		return err
	}
	h.releaseWork(id) // of an earlier attempt at the same
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[id] = lock
	return nil
}

// lockOf returns the name of the lock under which this store holds or held the work, or "".
func (h *heldLocks) lockOf(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[id]
}

// releaseWork lets others take over what was recorded under the id, and does so even if the end of the work could not
// be recorded.
func (h *heldLocks) releaseWork(id string) {
	if name := h.lockOf(id); name != "" {
		h.db.releaseLock(name)
	}
}

// forget is release for work that has ended for good.
func (h *heldLocks) forget(id string) {
	h.releaseWork(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.names, id)
}

const (
	locksFolder = "owners" // in the state folder
	lockSuffix  = ".lock"
)

// fileLocks are locks between processes on one machine: owners/<name>.lock is locked for as long as the lock is held.
// The kernel drops it when the process ends, however it ends, so a file that can be locked or is not there is a lock
// that has ended. Any process that finds such a file removes it. Names are not reused, so a lock that has ended stays
// ended.
type fileLocks struct {
	folder string
	newID  func() string

	mu   sync.Mutex
	held map[string]*os.File // nil before the first
}

func newFileLocks(stateDir string, newID func() string) *fileLocks {
	return &fileLocks{folder: filepath.Join(stateDir, locksFolder), newID: newID}
}

func (l *fileLocks) path(name string) string { return filepath.Join(l.folder, name+lockSuffix) }

func (l *fileLocks) acquire(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.Mkdir(l.folder, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if l.held == nil {
		if err := l.removeEnded(); err != nil {
			return "", err
		}
		l.held = map[string]*os.File{}
	}
	for {
		name := l.newID()
		file, err := os.OpenFile(l.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return "", err
		}
		locked, err := lockNew(file)
		if err == nil && locked {
			l.held[name] = file
			return name, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return "", err
		}
	}
}

// lockNew locks a file that was just made. It is false if somebody took the file for one that has ended, and removed
// it, before it was locked.
func lockNew(file *os.File) (bool, error) {
	if locked, err := files.TryLock(file, true); err != nil || !locked {
		return false, err
	}
	made, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(made, named), err
}

// removeEnded removes the files that killed processes left.
func (l *fileLocks) removeEnded() error {
	entries, err := os.ReadDir(l.folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), lockSuffix); ok {
			if _, err := l.hasEnded(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *fileLocks) released(_ context.Context, names []string) (map[string]bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]bool, len(names))
	for _, name := range names {
		if l.held[name] != nil || name != filepath.Base(name) { // ours, or no name of a lock
			continue
		}
		ended, err := l.hasEnded(name)
		if err != nil {
			return nil, err
		}
		out[name] = ended
	}
	return out, nil
}

// hasEnded reports whether the lock is free, and removes its file then.
func (l *fileLocks) hasEnded(name string) (bool, error) {
	file, err := os.OpenFile(l.path(name), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	free, err := files.TryLock(file, false) // shared: two who look at once do not take each other for the holder
	if err == nil && free {
		_ = os.Remove(file.Name()) // where this fails, the next one tries
	}
	return free, errors.Join(err, file.Close())
}

func (l *fileLocks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if file := l.held[name]; file != nil {
		delete(l.held, name)
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
}

// ready implements locks: the kernel drops no lock of a process that lives.
func (l *fileLocks) ready(context.Context) error { return nil }

func (l *fileLocks) usable() error { return nil }

func (l *fileLocks) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, file := range l.held {
		errs = append(errs, file.Close())
		_ = os.Remove(file.Name())
	}
	l.held = nil
	return errors.Join(errs...)
}
