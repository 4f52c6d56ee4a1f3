//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withoutWaiting opens a named pipe at once, even without a writer, and never makes a terminal the controlling one of
// the process. noLink refuses a link at the name itself.
const (
	withoutWaiting = unix.O_NONBLOCK | unix.O_NOCTTY
	noLink         = unix.O_NOFOLLOW
)

func openFolderUnlinked(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|withoutWaiting|noLink, 0)
}

// HardLinked reports whether a file has more than one name. Where an agent can write, such a name may be that of a file
// which the agent may not read.
func HardLinked(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// IsWritable reports whether this process's user may make files in a folder.
func IsWritable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// syncFolder puts the names in a folder on the disk. Some file systems cannot do so, and a folder that may not be read
// is not synced: the files in it are whole all the same.
func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
