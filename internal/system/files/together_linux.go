package files

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// putOff notes the file system of a file for Flush; false if that cannot be synced.
func (t *Together) putOff(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if t.systems[stat.Dev] != nil {
		return true
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return false
	}
	kept := os.NewFile(uintptr(fd), f.Name())
	if syncFileSystem(kept) != nil {
		_ = kept.Close()
		return false
	}
	if t.systems == nil {
		t.systems = map[uint64]*os.File{}
	}
	t.systems[stat.Dev] = kept
	return true
}

// syncFileSystem waits until all that was written to the file system of a file is on the disk.
func syncFileSystem(f *os.File) error { return unix.Syncfs(int(f.Fd())) }
