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
	"path/filepath"
	"strings"
	"time"
)

// ErrNotRegular is the error for a folder, a named pipe, a socket or a device. Test for it with errors.Is.
var ErrNotRegular = errors.New("is not a regular file")

// ErrTooLarge is the error for a file with more bytes than the caller takes. Test for it with errors.Is.
var ErrTooLarge = errors.New("is too large")

// ErrNotFolder is the error for what should be a folder and is none. Test for it with errors.Is.
var ErrNotFolder = errors.New("is not a folder")

// OpenPath opens a regular file for reading, at a path that the operator named: symbolic links are followed wherever
// they lead. The caller closes the file. Anything that is not a regular file is ErrNotRegular, in an *fs.PathError;
// opening it has no effect on it.
func OpenPath(path string) (*os.File, fs.FileInfo, error) {
	return openRegular(path, os.Stat, os.OpenFile)
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

// openRegular looks before it opens, since the opening of some devices has an effect, and again afterwards, since
// another file may have come to lie at the name in between.
func openRegular(name string, stat func(string) (fs.FileInfo, error),
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
	f, info, err := openRegular(path, os.Lstat, func(name string, flags int, mode fs.FileMode) (*os.File, error) {
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

// Stat says what lies at a path that the operator named, or where a link there leads to. It opens nothing.
func Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Lstat is Stat without following a final link.
func Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// IsFolder reports whether a path leads to a folder, also through links.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsOwn reports whether a file belongs to the user of this process; false where the system does not say.
func IsOwn(info fs.FileInfo) bool {
	uid, _, known := ownerOf(info)
	return known && uid == os.Geteuid()
}

// OpenInput opens what a person names on the command line for reading, also a pipe, such as the shell's <(command):
// then it waits for what writes to it. What anybody else names is opened with OpenPath.
func OpenInput(path string) (*os.File, error) { return os.Open(path) }

// RealPath returns the path without symbolic links of what lies at a path. fs.ErrNotExist where nothing does.
func RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// Resolve returns a path without symbolic links and without parts such as "..", also one that does not exist, or not
// all of it: the last parts of that are as they were. A relative path stays one.
func Resolve(path string) string {
	path = filepath.Clean(path)
	for missing := ""; ; {
		if real, err := RealPath(path); err == nil {
			return filepath.Join(real, missing)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, missing)
		}
		path, missing = parent, filepath.Join(filepath.Base(path), missing)
	}
}

// Glob lists the paths below a folder that fit a pattern, as filepath.Glob does: none where nothing can be read. In the
// folder's own path nothing stands for anything else.
func Glob(folder, pattern string) []string {
	if os.PathSeparator == '/' {
		folder = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(folder)
	}
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return nil
	}
	return found
}

// Size returns the number of bytes of all regular files below a folder; links are not followed. A file that disappears
// meanwhile counts as nothing.
func Size(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return size, err
}

// FolderFS returns the folder at a path that the operator named, as a file system of regular files: each is opened as
// OpenPath does, and only when it is asked for. The folder need not be there.
func FolderFS(path string) fs.FS { return folderFS(path) }

type folderFS string

// Open implements fs.FS.
func (dir folderFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, _, err := OpenPath(filepath.Join(string(dir), filepath.FromSlash(name)))
	var of *fs.PathError
	if errors.As(err, &of) {
		err = &fs.PathError{Op: "open", Path: name, Err: of.Err}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Create makes a file that is not there, with exactly the mode, and writes text. Anything that is there, also a link
// that leads nowhere, is fs.ErrExist. After an error there may be a part of it.
func Create(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	return fillNew(f, text, mode)
}

func fillNew(f *os.File, text []byte, mode fs.FileMode) error {
	_, err := f.Write(text)
	if err == nil && mode != privateFile {
		err = f.Chmod(mode)
	}
	return errors.Join(err, f.Close())
}

// OpenLock is Writing.OpenLock for a path that the operator named: symbolic links are followed wherever they lead.
func OpenLock(path string) (*os.File, error) {
	return openKept(path, os.O_RDWR|os.O_CREATE, privateFile, os.Stat, os.OpenFile)
}

// OpenAppend opens a regular file that the operator named, and makes it if it is not there, with the mode as far as the
// process's mask permits. What is written comes behind what it holds; it can be read as well. Anything else is
// ErrNotRegular, in an *fs.PathError, at once.
func OpenAppend(path string, mode fs.FileMode) (*os.File, error) {
	return openKept(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, mode, os.Stat, os.OpenFile)
}

// Mkdir makes a folder that is not there, with exactly the mode. Anything that is there is fs.ErrExist.
func Mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, privateFolder); err != nil || mode == privateFolder {
		return err
	}
	return os.Chmod(path, mode)
}

// MkdirAll makes a folder and those above it, as far as they are not there, with the mode as far as the process's mask
// permits.
func MkdirAll(path string, mode fs.FileMode) error { return os.MkdirAll(path, mode) }

// Remove removes a file, or a link. A missing one is not an error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveAll removes what lies at a path that is ours, with all that is in it. Links are removed, and not followed.
func RemoveAll(path string) error { return os.RemoveAll(path) }

// Rename gives a file or a folder of ours another name on the same file system, at once.
func Rename(from, to string) error { return os.Rename(from, to) }

// Touch gives a file or a folder of ours a time of its last change.
func Touch(path string, at time.Time) error { return os.Chtimes(path, at, at) }

// Temporary is a private folder (mode 0700) with an unpredictable name.
type Temporary struct{ Path string }

// MakeTemporary makes a private folder in another one, "" for the system's folder of temporary files. Its name begins
// with prefix. The caller calls Remove; a process that is killed in between leaves the folder behind.
func MakeTemporary(in, prefix string) (Temporary, error) {
	path, err := os.MkdirTemp(in, prefix+"*")
	return Temporary{path}, err
}

// Write makes a file in the folder (mode 0600), which must not be there, and says its path.
func (t Temporary) Write(name string, text []byte) (path string, err error) {
	path = filepath.Join(t.Path, name)
	return path, Create(path, text, privateFile)
}

// Remove removes the folder and all that is in it.
func (t Temporary) Remove() error { return os.RemoveAll(t.Path) }
