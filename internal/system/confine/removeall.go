package confine

import (
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll is like os.RemoveAll, but also removes folders whose owner has taken away the rights to them.
func RemoveAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(at, 0o700) //nolint:gosec // it is about to be removed
		}
		return nil
	})
	return os.RemoveAll(path)
}
