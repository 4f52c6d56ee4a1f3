//go:build unix

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes a lock on the open file if it can be had at once: exclusive ones exclude all others, shared ones
// exclude exclusive ones. The kernel releases it when the file is closed, and when the process ends, however it ends.
func TryLock(f *os.File, exclusive bool) (taken bool, err error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
