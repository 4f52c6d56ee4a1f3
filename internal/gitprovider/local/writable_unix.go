//go:build unix

package local

import "golang.org/x/sys/unix"

// writable reports whether this process may make files in the folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
