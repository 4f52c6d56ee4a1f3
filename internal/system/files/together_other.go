//go:build !linux

package files

import "os"

// putOff returns false: the system cannot sync a file system as a whole, so each file is synced.
func (t *Together) putOff(*os.File) bool { return false }

func syncFileSystem(f *os.File) error { return f.Sync() }
