//go:build unix

package change

import "golang.org/x/sys/unix"

// mayWrite reports whether this user may make files in a folder.
func mayWrite(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
