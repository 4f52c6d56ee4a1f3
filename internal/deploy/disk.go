package deploy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// disk reads and writes the files of targets. Every file lies below one of its bases (the user's home, the project, Codex's home), and
// no symbolic link is followed out of it.
type disk struct {
	bases []string // absolute
}

// newDisk knows the bases; the deepest that holds a path is the one that it is reached by.
func newDisk(bases ...string) disk {
	bases = slices.DeleteFunc(slices.Clone(bases), func(b string) bool { return b == "" })
	slices.SortFunc(bases, func(a, b string) int { return len(b) - len(a) })
	return disk{slices.Compact(bases)}
}

// within opens the base of a path. rel is the path below it, with slashes. fs.ErrNotExist if the base is not there.
func (d disk) within(name string) (root *os.Root, rel string, err error) {
	for _, base := range d.bases {
		if rel, err := filepath.Rel(base, name); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			root, err := os.OpenRoot(base)
			return root, filepath.ToSlash(rel), err
		}
	}
	return nil, "", fmt.Errorf("%s lies in none of the folders that may be written", name)
}

// found is what there is at a path.
type found struct {
	exists  bool
	content []byte
	hash    string // of a file; "" otherwise
	mode    fs.FileMode
	what    string // why it is no plain file; "" if it is one, or nothing is there
}

// look reads a path without following a link at its end.
func (d disk) look(name string) (found, error) {
	root, rel, err := d.within(name)
	if errors.Is(err, fs.ErrNotExist) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return found{}, nil
	case err != nil:
		return found{}, ioError(name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return found{exists: true, what: "a symbolic link"}, nil
	case info.IsDir():
		return found{exists: true, what: "a folder"}, nil
	case !info.Mode().IsRegular():
		return found{exists: true, what: "no regular file"}, nil
	case info.Size() > maxFileBytes:
		return found{exists: true, what: fmt.Sprintf("a file of more than %d bytes", maxFileBytes)}, nil
	}
	f, err := root.Open(rel)
	if err != nil {
		return found{}, ioError(name, err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(f)
	if err != nil {
		return found{}, ioError(name, err)
	}
	return found{exists: true, content: content, hash: hashOf(content), mode: info.Mode().Perm()}, nil
}

// temporary is how files that are being written are named; what a killed process left of them is removed.
const temporary = ".agentpack-new-"

// write replaces a file at once: a new one beside it, on disk, renamed. Folders are made. suffix makes the new one's name its own.
func (d disk) write(name string, content []byte, mode fs.FileMode, suffix string) error {
	root, rel, err := d.within(name)
	if err != nil {
		return ioError(name, err)
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(path.Dir(rel), 0o755); err != nil {
		return ioError(name, err)
	}
	fresh := path.Join(path.Dir(rel), temporary+suffix)
	_ = root.Remove(fresh) // of a process that was killed
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ioError(name, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(fresh, rel)
	}
	if err != nil {
		_ = root.Remove(fresh)
		return ioError(name, err)
	}
	syncFolder(root, path.Dir(rel))
	return nil
}

// remove removes a file; one that is not there is fine.
func (d disk) remove(name string) error {
	root, rel, err := d.within(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return ioError(name, err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Remove(rel); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return ioError(name, err)
	}
	syncFolder(root, path.Dir(rel))
	return nil
}

// removeEmpty removes a folder that stands where a file has to be, with the empty folders in it.
func (d disk) removeEmpty(name string) error {
	root, rel, err := d.within(name)
	if err != nil {
		return ioError(name, err)
	}
	defer func() { _ = root.Close() }()
	var folders []string
	err = fs.WalkDir(root.FS(), rel, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = fmt.Errorf("%s is in it", p)
		}
		folders = append(folders, p)
		return err
	})
	for _, folder := range slices.Backward(folders) {
		if err == nil {
			err = root.Remove(folder)
		}
	}
	if err != nil {
		return ioError(name, err)
	}
	return nil
}

// syncFolder puts a folder's entries on disk. Where folders cannot be synced, a file is still whole or as before.
func syncFolder(root *os.Root, name string) {
	if dir, err := root.Open(name); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// ioError gives an error of the file system its code.
func ioError(name string, err error) error {
	var coded *Error
	if errors.As(err, &coded) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || strings.Contains(err.Error(), "escapes") {
		return newError(PermissionDenied, "io_permission_denied", []string{"fix_permissions", "retry_command"}, "%s: %s", name, reason(err)).with("path", name).because(err)
	}
	return newError(Unexpected, "io_error", []string{"retry_command"}, "%s: %s", name, reason(err)).with("path", name).because(err)
}
