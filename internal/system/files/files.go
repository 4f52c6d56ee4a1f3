// Package files gives the other packages safe access to files. It reads files that others may have made: a project's
// configuration, a package's manifest, a script, an entry of a cache. A call always ends, whatever is at the name: it
// reads only regular files, opens them without waiting, and keeps at most a given number of bytes.
//
// A Dir reads below one folder, and a Writing changes what is there; neither leaves it, whatever links lie in it.
// Functions take paths that the operator named, or that are ours, where links are followed.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular is the error for a folder, a named pipe, a socket or a device. Test for it with errors.Is.
var ErrNotRegular = errors.New("is no regular file")

// ErrTooLarge is the error for a file with more bytes than the caller takes. Test for it with errors.Is.
var ErrTooLarge = errors.New("is too large")

// ErrNotFolder is the error for what should be a folder and is none. Test for it with errors.Is.
var ErrNotFolder = errors.New("is not a folder")

// OpenPath opens a regular file for reading, at a path that the operator named: symbolic links are followed wherever
// they lead. The caller closes the file. Anything that is not a regular file is ErrNotRegular, in an *fs.PathError;
// opening it has no effect on it.
func OpenPath(path string) (*os.File, fs.FileInfo, error) {
	return open(path, os.Stat, os.OpenFile)
}

// OpenFolderUnlinked opens the folder at a path, to be listed or locked. Anything else, also a link to a folder, is an
// error at once; links in the folders above are followed. The caller closes it.
func OpenFolderUnlinked(path string) (*os.File, error) { return openFolderUnlinked(path) }

// ReadPath reads a regular file of at most limit bytes, at a path that the operator named. The errors are those of
// OpenPath, and ErrTooLarge in an *fs.PathError. The information is of the very file that was read.
func ReadPath(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := OpenPath(path)
	if err != nil {
		return nil, nil, err
	}
	return readAndClose(f, info, path, limit)
}

// open looks before it opens, since the opening of some devices has an effect, and again afterwards, since another file
// may have come to lie at the name in between.
func open(name string, stat func(string) (fs.FileInfo, error),
	openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	info, err := stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	f, err := openFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// ReadUnlinked is ReadPath, but that a link at the path itself is ErrNotRegular.
func ReadUnlinked(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := open(path, os.Lstat, func(name string, flags int, mode fs.FileMode) (*os.File, error) {
		return os.OpenFile(name, flags|noLink, mode)
	})
	if err != nil {
		return nil, nil, err
	}
	return readAndClose(f, info, path, limit)
}

func readAndClose(f *os.File, info fs.FileInfo, name string, limit int64) ([]byte, fs.FileInfo, error) {
	defer func() { _ = f.Close() }()
	tooLarge := &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
	if info.Size() > limit {
		return nil, nil, tooLarge
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(text)) > limit { // it has grown, or is one whose size the system does not tell
		return nil, nil, tooLarge
	}
	return text, info, nil
}
