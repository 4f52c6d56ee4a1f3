//go:build !unix

package files

import (
	"io/fs"
	"os"
)

// withoutWaiting is nothing here: what lies in a folder of Windows is a file or a folder. noLink is nothing either: a
// link is recognised before the file is opened.
const (
	withoutWaiting = 0
	noLink         = 0
)

func openFolderUnlinked(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotFolder}
	}
	return os.Open(path)
}

// HardLinked returns false here: the information does not tell how many names a file has.
func HardLinked(fs.FileInfo) bool { return false }

// IsWritable reports whether a folder is not read-only; what its access list says is found out by writing.
func IsWritable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o200 != 0
}

// syncFolder does nothing here: folders cannot be synced.
func syncFolder(*os.Root, string) error { return nil }
