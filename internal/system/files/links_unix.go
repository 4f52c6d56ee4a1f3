//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// HardLinked reports whether a file has more than one name. Where an agent can write, such a name may be that of a file
// which the agent may not read.
func HardLinked(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
