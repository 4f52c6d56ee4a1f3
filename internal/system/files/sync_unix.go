//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

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
