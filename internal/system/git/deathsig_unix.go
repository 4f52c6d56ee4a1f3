//go:build unix && !linux

package git

import "syscall"

// endWithParent needs Linux: elsewhere a git command goes on when this process is killed, and what it still does is for
// a settlement to find.
func endWithParent(*syscall.SysProcAttr) {}
