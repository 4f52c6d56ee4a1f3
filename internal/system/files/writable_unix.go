//go:build unix

package files

import "golang.org/x/sys/unix"

// IsWritable reports whether this process's user may make files in a folder.
func IsWritable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
