//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder, and never waits for something that is none. Without follow, a link to one is an error.
func openFolder(path string, follow bool) (*os.File, error) {
	flags := os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	return os.OpenFile(path, flags, 0) // #nosec G304: the operator's repositories
}

// openFile opens a file, and never waits for the writer of a pipe. A link is an error.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0) // #nosec G304: see openFolder
}

// writable reports whether this process may make files in the folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// isOurs reports whether a file belongs to this process's user.
func isOurs(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}

// isolate puts the command into a process group of its own: a Ctrl-C at the terminal does not reach git in the middle
// of a write, and a cancelled command is ended with all its children. It is asked first (SIGTERM), so that git removes
// its lock files; a killed git would leave them and block the repository.
//
// A command that writes under a lock is left alone.
func isolate(cmd *exec.Cmd, t *writeLock) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if t != nil {
		cmd.ExtraFiles = t.files()
		return
	}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills what is left of a cancelled command's group.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is the usual case
	}
}

// writeLock is an advisory lock (flock(2)) on the repository's folder itself, so that nothing is made there. It lasts until its
// last copy is closed: ours, and that of the git command that inherited it.
type writeLock struct{ folder *os.File }

// tryLock takes the lock; nil without an error if somebody else has it. A file system that has no such locks gives it to
// everybody: git's own locks must do there.
func tryLock(gitDir string) (*writeLock, error) {
	folder, err := openFolder(gitDir, false)
	if err != nil {
		return nil, err
	}
	err = flock(folder)
	switch {
	case err == nil, errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EBADF),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOLCK):
		return &writeLock{folder}, nil
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

// unlock gives the lock up, as far as this process is concerned.
func (t *writeLock) unlock() { _ = t.folder.Close() }

// files is what a command inherits.
func (t *writeLock) files() []*os.File { return []*os.File{t.folder} }
