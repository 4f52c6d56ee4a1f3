package change

import "os"

// mayWrite reports whether a folder is not read-only; what its access list says is found out by writing.
func mayWrite(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
