package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/filelock"
)

const (
	ownersName  = "owners" // folder of the lock files, in the state folder
	ownerSuffix = ".lock"
)

// lockFiles is the presence of processes on one machine: each store that makes proposals holds the lock on a file of its
// own, owners/<name>.lock. The kernel drops it when the process ends, however it ends, so a file that can be locked or is
// not there belongs to a process that is gone. Whoever finds such a file removes it.
type lockFiles struct {
	place
	newID func() string

	mu   sync.Mutex
	name string
	file *os.File            // locked; nil if none is held
	own  map[string]struct{} // every name this store ever had
}

func newLockFiles(p place, newID func() string) *lockFiles {
	return &lockFiles{place: p, newID: newID, own: map[string]struct{}{}}
}

func (l *lockFiles) pathOf(name string) string {
	return filepath.Join(l.dir, ownersName, name+ownerSuffix)
}

func (l *lockFiles) enter(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && sameFile(l.file) {
		return l.name, nil
	}
	if err := l.drop(); err != nil {
		return "", err
	}
	if err := l.tidy(); err != nil {
		return "", err
	}
	for {
		name := l.newID()
		file, err := lockNew(l.pathOf(name))
		if err != nil {
			return "", err
		}
		if file != nil {
			l.name, l.file = name, file
			l.own[name] = struct{}{}
			return name, nil
		}
	}
}

// lockNew makes the file and locks it; nil if somebody took it for a left one before it was locked.
func lockNew(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	if held, err := lockMade(file); err != nil || !held {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// lockMade locks a new file, and reports whether it is held and still there.
func lockMade(file *os.File) (held bool, err error) {
	taken, err := filelock.Try(file, true)
	return taken && sameFile(file), err
}

// sameFile reports whether the open file is still there under its name.
func sameFile(file *os.File) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(file.Name())
	return err == nil && os.SameFile(held, named)
}

// tidy makes the folder if it is missing, and removes the files that killed processes left.
func (l *lockFiles) tidy() error {
	folder := filepath.Join(l.dir, ownersName)
	if err := os.Mkdir(folder, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ownerSuffix); ok {
			if _, err := l.left(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lockFiles) gone(_ context.Context, names []string) (map[string]bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]bool, len(names))
	for _, name := range names {
		if _, mine := l.own[name]; mine {
			continue
		}
		if name != filepath.Base(name) {
			continue // no name of ours
		}
		left, err := l.left(name)
		if err != nil {
			return nil, err
		}
		out[name] = left
	}
	return out, nil
}

// left reports whether nobody holds the file of the name, and removes it then. Names are not used again, so what is left
// once is left for good.
func (l *lockFiles) left(name string) (bool, error) {
	path := l.pathOf(name)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	taken, err := filelock.Try(file, false) // shared: two who look at once do not take each other for the owner
	if err == nil && taken {
		_ = os.Remove(path) // where this fails, the next one tries
	}
	return taken, errors.Join(err, file.Close())
}

func (l *lockFiles) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.own, l.name)
	return l.drop()
}

// drop ends the presence under the name so far.
func (l *lockFiles) drop() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	if sameFile(file) {
		_ = os.Remove(file.Name()) // Windows removes no open file; whoever finds it does
	}
	return file.Close()
}
