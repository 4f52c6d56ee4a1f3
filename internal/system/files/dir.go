package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Dir reads below one folder and can write nothing. A symbolic link is followed as far as it stays in the folder; one
// that leaves it is an error. Names have slashes and are relative to the folder. It is safe for concurrent use.
type Dir struct{ root *os.Root }

// OpenDir opens a folder that the operator named: symbolic links on the way to it are followed wherever they lead.
// Anything that is not a folder is ErrNotFolder in an *fs.PathError, at once. The caller closes the Dir.
func OpenDir(path string) (*Dir, error) {
	root, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

func openRoot(path string) (*os.Root, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotFolder}
	}
	root, err := os.OpenRoot(asFolder(path)) // another file may lie at the path by now
	var of *fs.PathError
	if errors.As(err, &of) {
		of.Path = path
	}
	return root, err
}

// asFolder returns a name that the system takes for that of a folder alone: os.OpenRoot waits for a named pipe else.
func asFolder(name string) string {
	if name == "" || os.IsPathSeparator(name[len(name)-1]) {
		return name
	}
	return name + string(os.PathSeparator)
}

// Close closes the folder. What was opened below it stays open.
func (d *Dir) Close() error { return d.root.Close() }

// Folder opens a folder in this one. Links in it are followed as far as they stay in the inner one. Anything that is
// not a folder is an error at once. The caller closes it.
func (d *Dir) Folder(name string) (*Dir, error) {
	root, err := d.root.OpenRoot(asFolder(name))
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Stat says what lies at the name, or where a link there leads to. It opens nothing.
func (d *Dir) Stat(name string) (fs.FileInfo, error) { return d.root.Stat(name) }

// Lstat is Stat without following a final link.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// Has reports whether there is anything at a name; a link there is not followed.
func (d *Dir) Has(name string) bool {
	_, err := d.root.Lstat(name)
	return err == nil
}

// Name returns the path that the folder was opened by.
func (d *Dir) Name() string { return d.root.Name() }

// FS returns the folder for fs.WalkDir, which follows no links. Files are to be read by Read, which waits for none.
func (d *Dir) FS() fs.FS { return d.root.FS() }

// Itself opens the folder as a file, to be locked. The caller closes it.
func (d *Dir) Itself() (*os.File, error) { return d.root.Open(".") }

// Open opens a regular file for reading. Anything else is ErrNotRegular, in an *fs.PathError; opening it has no effect
// on it. The information is of the very file that was opened. The caller closes the file.
func (d *Dir) Open(name string) (*os.File, fs.FileInfo, error) {
	return open(name, d.root.Stat, d.root.OpenFile)
}

// Read reads a regular file of at most limit bytes. The errors are those of Open, and ErrTooLarge in an *fs.PathError.
// The information is of the very file that was read.
func (d *Dir) Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	return Read(d.root, name, limit)
}

// Entries lists a folder by name, at most limit entries of it: complete is false if there are more. "." is this one.
// Anything that is not a folder is ErrNotFolder, in an *fs.PathError, at once.
func (d *Dir) Entries(name string, limit int) (entries []fs.DirEntry, complete bool, err error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return nil, false, &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	dir, err := d.root.OpenFile(name, os.O_RDONLY|withoutWaiting, 0) // another file may lie at the name by now
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dir.Close() }()
	entries, err = dir.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	complete = len(entries) <= limit
	entries = entries[:min(len(entries), limit)]
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, complete, nil
}
