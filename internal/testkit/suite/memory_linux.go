package main

import "golang.org/x/sys/unix"

// freeBytes returns how many bytes a file system has free for programs and files; 0 if no program may run there.
func freeBytes(path string) uint64 {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil || stat.Flags&unix.ST_NOEXEC != 0 {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize) // #nosec G115: a size is positive
}
