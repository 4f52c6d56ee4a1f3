//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/claudeops/claudeops/internal/system/files"
)

// isOurs reports whether a file belongs to this process's user.
func isOurs(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}

// writeLock is an advisory lock (flock(2)) on the repository's folder itself, so that nothing is made there. It lasts
// until its last copy is closed: ours, and that of the git command that inherited it.
type writeLock struct{ folder *os.File }

// tryLock takes the lock; nil without an error if somebody else has it. A file system that has no such locks gives it
// to everybody: git's own locks must do there.
func tryLock(gitDir string) (*writeLock, error) {
	folder, err := files.OpenFolderUnlinked(gitDir)
	if err != nil {
		return nil, err
	}
	taken, err := files.TryLock(folder, true)
	switch {
	case taken, errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EBADF),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOLCK):
		return &writeLock{folder}, nil
	}
	_ = folder.Close()
	return nil, err
}

// unlock gives the lock up, as far as this process is concerned.
func (t *writeLock) unlock() { _ = t.folder.Close() }

// files returns the files that a command inherits.
func (t *writeLock) files() []*os.File { return []*os.File{t.folder} }
