//go:build linux || darwin

package scripts

import (
	"os"
	"syscall"
	"time"
)

// fileMark tells whether a file is the one that was read: nobody can set the time of its last change.
type fileMark struct {
	inode    uint64
	size     int64
	mode     os.FileMode
	modified time.Time
	changed  int64
}

// markOf is false for what must be read each time.
func markOf(path string) (fileMark, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fileMark{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileMark{}, false
	}
	return fileMark{stat.Ino, info.Size(), info.Mode(), info.ModTime(), changeTime(stat)}, true
}
