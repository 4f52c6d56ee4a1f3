package change

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/claudeops/claudeops/internal/system/files"
)

// What follows changes one thing below a root, for callers that keep a journal of their own. No link is followed out of
// the root.

// Replace replaces a file at once, on disk before it has its name, and makes its folders.
func Replace(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	fresh := path.Join(folder, ".new-"+rand.Text())
	file, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(fresh, name)
	}
	if err != nil {
		_ = root.Remove(fresh)
		return err
	}
	syncFolder(root, folder)
	return nil
}

// Stage writes the files of a tree below a folder, where they wait until Move gives the folder its place. at is the
// file of an error.
func Stage(root *os.Root, folder string, tree Tree) (at string, err error) {
	made := map[string]bool{}
	for _, name := range tree.Paths() {
		at = path.Join(folder, name)
		if dir := path.Dir(at); !made[dir] {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return at, err
			}
			made[dir] = true
		}
		content, err := tree[name].Content.Bytes()
		if err != nil {
			return at, err
		}
		if err := root.WriteFile(at, content, fs.FileMode(modeOf(tree[name].Executable))); err != nil {
			return at, err
		}
	}
	return "", nil
}

// Move gives a file or a folder another place, at once, and makes the folders above that.
func Move(root *os.Root, from, to string) error {
	if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	return root.Rename(from, to)
}

// Has reports whether there is anything at a path; a link at its end is not followed.
func Has(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// Remove removes a file, or a folder that is empty; one that is not there is fine.
func Remove(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// OpenLock opens a file that is locked and never written, and makes it if there is none. Anything but a regular file is
// files.ErrNotRegular.
func OpenLock(root *os.Root, name string) (*os.File, error) {
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: files.ErrNotRegular}
	}
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
}
