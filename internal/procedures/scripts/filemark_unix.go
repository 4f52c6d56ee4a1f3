//go:build linux || darwin

package scripts

import (
	"io/fs"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// fileMark identifies a version of a file: the time of its last inode change cannot be set.
type fileMark struct {
	inode    uint64
	size     int64
	mode     fs.FileMode
	modified time.Time
	changed  int64
}

// markOf returns false for a file that must be read each time.
func markOf(path string) (fileMark, bool) {
	info, err := files.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fileMark{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileMark{}, false
	}
	return fileMark{stat.Ino, info.Size(), info.Mode(), info.ModTime(), changeTime(stat)}, true
}
