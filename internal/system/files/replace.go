package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

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
