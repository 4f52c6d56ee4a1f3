package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	root, err := w.root.OpenRoot(asFolder(name))
	if err != nil {
		return nil, err
	}
	return &Writing{Dir{root}, w.Unsynced}, nil
}

// Mkdir makes a folder, with the mode as far as the process's mask permits. An existing folder is not an error;
// anything else that exists, also a link to a folder, is ErrNotFolder.
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

// Remove removes a file, or a link, and what a killed Replace of it has left. A missing one is not an error.
func (w *Writing) Remove(name string) error {
	for _, one := range []string{name, unfinished(name)} {
		if err := w.root.Remove(one); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// MkdirAll makes a folder and those above it, as far as they are not there, with the mode as far as the process's mask
// permits.
func (w *Writing) MkdirAll(name string, mode fs.FileMode) error { return w.root.MkdirAll(name, mode) }

// Create makes a file that is not there, with exactly the mode, and writes text. Anything that is there is fs.ErrExist.
// After an error there may be a part of it.
func (w *Writing) Create(name string, text []byte, mode fs.FileMode) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	return fillNew(f, text, mode)
}

// Extract makes a file that is not there, as an archive has it: with the mode as far as the process's mask permits, of
// what in has. Anything that is there is fs.ErrExist. After an error there may be a part of it.
func (w *Writing) Extract(name string, in io.Reader, mode fs.FileMode) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// Symlink makes a link that leads to target, wherever that is; a Dir follows it as far as it stays in the folder.
func (w *Writing) Symlink(target, name string) error { return w.root.Symlink(target, name) }

// Put is Replace, and makes the folders above the file (mode 0755, as far as the process's mask permits).
func (w *Writing) Put(name string, text []byte, mode fs.FileMode) error {
	if err := w.root.MkdirAll(path.Dir(name), sharedFolder); err != nil {
		return err
	}
	return w.Replace(name, text, mode)
}

// Move gives a file or a folder another name at once, and makes the folders above that, as Put does.
func (w *Writing) Move(from, to string) error {
	if err := w.root.MkdirAll(path.Dir(to), sharedFolder); err != nil {
		return err
	}
	return w.root.Rename(from, to)
}

// RemoveAll removes a file, or a folder with all that is in it. Links in it are removed, and not followed.
func (w *Writing) RemoveAll(name string) error { return w.root.RemoveAll(name) }

// Append writes text behind what a regular file holds. The file must be there.
func (w *Writing) Append(name string, text []byte) error {
	f, err := openKept(name, os.O_WRONLY|os.O_APPEND, 0, w.root.Lstat, w.root.OpenFile)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// OpenLock opens the file of a lock, and makes it (mode 0600) if it is not there: see filelock. Anything that is not a
// regular file, also a link to one, is ErrNotRegular. The caller closes it.
func (w *Writing) OpenLock(name string) (*os.File, error) {
	return openKept(name, os.O_RDWR|os.O_CREATE, privateFile, w.root.Lstat, w.root.OpenFile)
}

// Modes of what is ours alone.
const (
	privateFile   = 0o600
	privateFolder = 0o700
	sharedFolder  = 0o755
)

// openKept opens a file that stays the same file while it is written. It looks before and after, as open does.
func openKept(name string, flags int, mode fs.FileMode, stat func(string) (fs.FileInfo, error),
	openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
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

// unfinished returns the name under which Replace writes a file, in the same folder: always the same, so that what a
// killed process left is found.
func unfinished(name string) string { return path.Join(path.Dir(name), ".new-"+path.Base(name)) }

// Replace makes a file hold text, with exactly the mode: a reader, also after a kill or a loss of power, sees the old
// contents or all of text. Text and name are on the disk when it returns, unless w is Unsynced. A link at the name is
// replaced by the file; the file that it led to stays. Callers take a lock where two calls for one name may run at
// once, in this process or in two: otherwise one of them fails, and a reader may see a part for a moment.
func (w *Writing) Replace(name string, text []byte, mode fs.FileMode) error {
	fresh := unfinished(name)
	if err := w.root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := w.root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	written, err := w.fill(f, text, mode)
	if err != nil {
		return errors.Join(err, w.root.Remove(fresh))
	}
	if err := w.isStill(fresh, written); err != nil {
		return err // what lies there is another call's
	}
	if err := w.root.Rename(fresh, name); err != nil {
		return errors.Join(err, w.root.Remove(fresh))
	}
	if w.Unsynced {
		return nil
	}
	return syncFolder(w.root, path.Dir(name))
}

// fill writes a new file to the disk, and closes it.
func (w *Writing) fill(f *os.File, text []byte, mode fs.FileMode) (written fs.FileInfo, err error) {
	_, err = f.Write(text)
	if err == nil && mode != privateFile {
		err = f.Chmod(mode)
	}
	if err == nil {
		written, err = f.Stat()
	}
	if err == nil && !w.Unsynced {
		err = f.Sync()
	}
	return written, errors.Join(err, f.Close())
}

// isStill returns an error if another call has put its own file at the name, which may not be whole.
func (w *Writing) isStill(name string, written fs.FileInfo) error {
	info, err := w.root.Lstat(name)
	if err == nil && !os.SameFile(info, written) {
		err = &fs.PathError{Op: "rename", Path: name, Err: errors.New("another call replaces the file")}
	}
	return err
}

// Replace is Writing.Replace for a path that the operator named: symbolic links to its folder are followed wherever
// they lead.
func Replace(path string, text []byte, mode fs.FileMode) error {
	w, err := OpenWriting(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(w.Replace(filepath.Base(path), text, mode), w.Close())
}
