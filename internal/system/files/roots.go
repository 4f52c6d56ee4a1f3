package files

import (
	"io/fs"
	"os"
)

// Read is Dir.Read below a root, for system/change, which stages files of its own below roots; everybody else has a Dir
// or a Writing.
func Read(root *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := open(name, root.Stat, root.OpenFile)
	if err != nil {
		return nil, nil, err
	}
	return readAndClose(f, info, name, limit)
}
