package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/filelock"
)

// A backup is prepared in a folder of its own beside where it goes: the copy of the database and the draft of the archive, with
// the key in it. The process that prepares it holds a lock there for as long as it lives, so that the next backup can tell what
// a killed one has left from what another one is working on.

const (
	scratchPrefix = ".claudeops-backup-"
	lockName      = "lock"
	draftName     = "backup.tar"
)

// workplace is such a folder.
type workplace struct {
	dir  string
	lock *os.File
}

// newWorkplace removes what killed backups have left in the folder beside, and makes a workplace there, for its owner only.
func newWorkplace(beside string) (w *workplace, err error) {
	clearLeftovers(beside)
	const tries = 5 // another backup may clear away a folder of ours whose lock it was faster to take
	for range tries {
		if w, err = takeWorkplace(beside); err == nil {
			return w, nil
		}
	}
	return nil, err
}

var errTaken = errors.New("another backup has cleared away the folder that was made for this one")

func takeWorkplace(beside string) (*workplace, error) {
	dir, err := os.MkdirTemp(beside, scratchPrefix+"*") // mode 0700
	if err != nil {
		return nil, err
	}
	w := &workplace{dir: dir}
	if w.lock, err = os.OpenFile(w.in(lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// A file system without locks is no reason to have no backup: there, nothing is taken for a leftover either.
	taken, lockErr := filelock.Try(w.lock, true)
	if (taken || lockErr != nil) && w.isThere() {
		return w, nil
	}
	w.leave()
	return nil, errTaken
}

// isThere reports whether the lock is still the one of the folder.
func (w *workplace) isThere() bool {
	held, err := w.lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(w.in(lockName))
	return err == nil && os.SameFile(held, named)
}

func (w *workplace) in(name string) string { return filepath.Join(w.dir, name) }

// leave removes the workplace.
func (w *workplace) leave() { removeLocked(w.dir, w.lock) }

// removeLocked removes a folder whose lock is held. The second time is for Windows, which removes no file that is open.
func removeLocked(dir string, lock *os.File) {
	_ = os.RemoveAll(dir)
	_ = lock.Close()
	_ = os.RemoveAll(dir)
}

// clearLeftovers removes the workplaces of processes that have ended. What cannot be removed stays, and so does what is not
// ours.
func clearLeftovers(beside string) {
	entries, err := os.ReadDir(beside)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), scratchPrefix) {
			clearLeftover(filepath.Join(beside, e.Name()))
		}
	}
}

func clearLeftover(dir string) {
	info, err := os.Lstat(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(dir) // only if it is empty: its process was killed before there was a lock, or is about to make one
		return
	}
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return
	}
	if taken, err := filelock.Try(lock, true); err != nil || !taken {
		_ = lock.Close()
		return
	}
	removeLocked(dir, lock)
}
