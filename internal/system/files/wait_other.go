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
