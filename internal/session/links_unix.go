//go:build unix

package session

import (
	"io/fs"
	"syscall"
)

// hardLinked reports whether a file has more than one name.
func hardLinked(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
