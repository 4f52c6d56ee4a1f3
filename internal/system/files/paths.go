package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Stat says what lies at a path that the operator named, or where a link there leads to. It opens nothing.
func Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Lstat is Stat without following a final link.
func Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// IsFolder reports whether a path leads to a folder, also through links.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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
