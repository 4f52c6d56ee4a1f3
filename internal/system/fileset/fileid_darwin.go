package fileset

import (
	"io/fs"
	"syscall"
)

// identify returns the system's stat data of a file; ok is false where they are insufficient.
func identify(info fs.FileInfo) (id fileID, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false
	}
	return fileID{
		Size: s.Size, Changed: s.Mtimespec.Nano(), Status: s.Ctimespec.Nano(), Inode: s.Ino, Device: uint64(s.Dev), Mode: uint32(s.Mode), //nolint:gosec // compared alone
	}, true
}
