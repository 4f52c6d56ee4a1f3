//go:build unix

package local

import (
	"errors"
	"os"
	"syscall"
)

// turn is an advisory lock (flock(2)) on the repository's folder itself, so that nothing is made there. It lasts until its
// last copy is closed: ours, and that of the git command that inherited it.
type turn struct{ folder *os.File }

// tryTurn takes the turn; nil without an error if somebody else has it. A file system that has no such locks gives
// everybody a turn: git's own locks must do there.
func tryTurn(gitDir string) (*turn, error) {
	folder, err := openFolder(gitDir, false)
	if err != nil {
		return nil, err
	}
	err = flock(folder)
	switch {
	case err == nil, errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EBADF),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOLCK):
		return &turn{folder}, nil
	}
	_ = folder.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// end gives the turn up, as far as this process is concerned.
func (t *turn) end() { _ = t.folder.Close() }

// files is what a command inherits.
func (t *turn) files() []*os.File { return []*os.File{t.folder} }
