//go:build linux || darwin

package files

import "golang.org/x/sys/unix"

// Room is how many bytes of the disk that holds a path are free for this user, and how many it has; known is false
// where the system does not tell.
func Room(path string) (free, size uint64, known bool) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil || stat.Bsize <= 0 {
		return 0, 0, false
	}
	block := uint64(stat.Bsize)
	return stat.Bavail * block, stat.Blocks * block, true
}
