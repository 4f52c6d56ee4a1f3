package files

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock takes a lock on the open file if it can be had at once: exclusive ones exclude all others, shared ones
// exclude exclusive ones. The system releases it when the file is closed, and when the process ends, however it ends.
func TryLock(f *os.File, exclusive bool) (taken bool, err error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
