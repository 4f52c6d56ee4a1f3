//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"

	"github.com/claudeops/claudeops/internal/fault"
)

// ownFolder refuses a folder of another user: what is made in it would be ours, and that user's claudeops could not use it.
func ownFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the state folder %s cannot be looked at", dir)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fault.New(fault.Conflict, "the state folder %s belongs to user %d, and this is user %d; restore as its owner",
			dir, stat.Uid, os.Geteuid())
	}
	return nil
}

func isReadOnlyDisk(err error) bool { return errors.Is(err, syscall.EROFS) }
