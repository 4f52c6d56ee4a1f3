package files

import (
	"errors"
	"io/fs"
	"os"
)

// Writing changes what lies below one folder, and reads as a Dir does. Who only reads is given a Dir.
type Writing struct {
	Dir
	// Unsynced spares Replace the wait for the disk, some milliseconds a file: after a loss of power, a file may be empty
	// or cut off. It is for caches whose readers tell such files.
	Unsynced bool
}

// OpenWriting is OpenDir for a folder that is written. The caller closes it.
func OpenWriting(path string) (*Writing, error) {
	root, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	return &Writing{Dir: Dir{root}}, nil
}

// Folder is Dir.Folder for a folder that is written, unsynced if this one is.
func (w *Writing) Folder(name string) (*Writing, error) {
	root, err := OpenFolder(w.root, name)
	if err != nil {
		return nil, err
	}
	return &Writing{Dir{root}, w.Unsynced}, nil
}

// Mkdir makes a folder, with the mode as far as the process's mask permits. One that is there is no error; anything
// else that is there, also a link to a folder, is ErrNotFolder.
func (w *Writing) Mkdir(name string, mode fs.FileMode) error {
	if err := w.root.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := w.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: name, Err: ErrNotFolder}
	}
	return err
}

// Remove removes a file, or a link, and what a killed Replace of it has left. What is not there is no error.
func (w *Writing) Remove(name string) error {
	for _, one := range []string{name, unfinished(name)} {
		if err := w.root.Remove(one); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Append writes text behind what a regular file holds. The file must be there.
func (w *Writing) Append(name string, text []byte) error {
	f, err := openKept(name, os.O_WRONLY|os.O_APPEND, 0, w.root.Lstat, w.root.OpenFile)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// OpenLock opens the file of a lock, and makes it (mode 0600) if it is not there: see filelock. Anything that is no
// regular file, also a link to one, is ErrNotRegular. The caller closes it.
func (w *Writing) OpenLock(name string) (*os.File, error) {
	return openKept(name, os.O_RDWR|os.O_CREATE, privateFile, w.root.Lstat, w.root.OpenFile)
}

// Modes of what is ours alone.
const (
	privateFile   = 0o600
	privateFolder = 0o700
)

// openKept opens a file that stays the same file while it is written. It looks before and after, as open does.
func openKept(name string, flags int, mode fs.FileMode, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
	notRegular := &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	if info, err := stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular
	}
	f, err := openFile(name, flags|withoutWaiting, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
