package files

import (
	"io/fs"
	"os"
)

// Deployments and packages open roots themselves, and write below them by transactions of their own. These functions
// are theirs; everybody else has a Dir or a Writing.

// Read is Dir.Read below a root.
func Read(root *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := open(name, root.Stat, root.OpenFile)
	if err != nil {
		return nil, nil, err
	}
	return readAndClose(f, info, name, limit)
}

// OpenFolder opens a folder below a root, as Dir.Folder does.
func OpenFolder(root *os.Root, name string) (*os.Root, error) {
	return root.OpenRoot(asFolder(name))
}

// OpenFolderPath opens the folder at a path as a root: symbolic links are followed wherever they lead. Anything that is
// no folder is an error at once.
func OpenFolderPath(path string) (*os.Root, error) {
	if path == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return os.OpenRoot(asFolder(path))
}

// Entries lists a folder below a root, in no order. The errors are those of OpenFolder.
func Entries(root *os.Root, name string) ([]fs.DirEntry, error) {
	folder, err := OpenFolder(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	f, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.ReadDir(-1)
}
