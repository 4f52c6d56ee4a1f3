//go:build !unix

package files

import "os"

// IsWritable reports whether a folder is not read-only; what its access list says is found out by writing.
func IsWritable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
