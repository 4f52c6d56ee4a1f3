package main

import "syscall"

// minScratch is the free space in bytes below which the disk is used.
const minScratch = 6 << 30

func hasSpace(root string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(root, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= minScratch
}
