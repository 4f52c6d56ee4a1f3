package change

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// temporary is the name prefix of staged files; the next call removes those that a killed process left.
const temporary = ".agentpack-new-"

// stage writes a new file where it waits, on disk.
func (d disk) stage(name string, content []byte, mode fs.FileMode) error {
	return d.in(name, func(root *os.Root, rel string) error {
		_ = root.Remove(rel) // of a process that was killed
		f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
		if err != nil {
			_ = root.Remove(rel)
		}
		return err
	})
}

// place moves a staged file to its place, atomically. It makes missing folders.
func (d disk) place(staged, name string) error {
	root, from, err := d.within(staged)
	if err != nil {
		return IOError(staged, err)
	}
	defer func() { _ = root.Close() }()
	to, err := filepath.Rel(filepath.Dir(staged), name)
	if err != nil {
		return IOError(name, err)
	}
	rel := path.Join(path.Dir(from), filepath.ToSlash(to))
	if err := root.MkdirAll(path.Dir(rel), 0o755); err != nil {
		return IOError(name, err)
	}
	if err := root.Rename(from, rel); err != nil {
		return IOError(name, err)
	}
	return nil
}

// write stages a file beside its place and places it. Folders are made.
func (d disk) write(name string, content []byte, mode fs.FileMode, suffix string) error {
	err := d.in(name, func(root *os.Root, rel string) error { return root.MkdirAll(path.Dir(rel), 0o755) })
	if err != nil {
		return err
	}
	staged := filepath.Join(filepath.Dir(name), temporary+suffix)
	if err := d.stage(staged, content, mode); err != nil {
		return err
	}
	if err := d.place(staged, name); err != nil {
		_ = d.remove(staged)
		return err
	}
	return nil
}

// WriteBelow writes a file below a folder, out of which no link is followed. name is its absolute path; the folders
// above it are made, and base.
func WriteBelow(base, name string, content []byte, executable bool, suffix string) error {
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // as other programs make it
		return IOError(base, err)
	}
	return newDisk(base).write(name, content, fs.FileMode(modeOf(executable)), suffix)
}

// remove removes a file; one that is not there is fine.
func (d disk) remove(name string) error {
	root, rel, err := d.within(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return IOError(name, err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Remove(rel); err != nil && !absent(err) {
		return IOError(name, err)
	}
	return nil
}

// removeEmpty removes a folder that stands where a file has to be, with the empty folders in it.
func (d disk) removeEmpty(name string) error {
	return d.in(name, func(root *os.Root, rel string) error {
		var folders []string
		err := fs.WalkDir(root.FS(), rel, func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				err = fs.ErrExist
			}
			folders = append(folders, p)
			return err
		})
		for _, folder := range slices.Backward(folders) {
			if err == nil {
				err = root.Remove(folder)
			}
		}
		return err
	})
}

// writable tries whether files can be made in a folder.
func (d disk) writable(dir, suffix string) error {
	probe := filepath.Join(dir, temporary+suffix)
	if err := d.stage(probe, nil, 0o600); err != nil {
		return err
	}
	return d.remove(probe)
}

// sync puts the entries of the folders of files on disk.
func (d disk) sync(names []string) {
	seen := map[string]bool{}
	for _, name := range names {
		dir := filepath.Dir(name)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if root, rel, err := d.within(dir); err == nil {
			syncFolder(root, rel)
			_ = root.Close()
		}
	}
}

// syncFolder puts a folder's entries on disk. Where folders cannot be synced, a file is still whole or as before.
func syncFolder(root *os.Root, name string) {
	if dir, err := root.Open(name); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}
