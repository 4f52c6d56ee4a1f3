package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

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
