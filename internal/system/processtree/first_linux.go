package processtree

import "golang.org/x/sys/unix"

// isFirst reports whether this is the thread that the process began with.
func isFirst() bool { return unix.Gettid() == unix.Getpid() }
