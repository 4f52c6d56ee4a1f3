package local

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

const (
	lockWait  = 20 * time.Second // a write takes milliseconds
	lockPause = 5 * time.Millisecond
)

// lockForWriting waits until no claudeops process on this machine writes references of the repository, and keeps others
// from it until the lock is given up. A git command that was started under the lock inherits it, so it lasts until that
// command has ended, even if this process ends earlier. Other programs do not take this lock: git's own locks exclude
// them.
func lockForWriting(ctx context.Context, repo *repository) (*writeLock, error) {
	bounded, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		lock, err := tryLock(repo.gitDir)
		switch {
		case err != nil:
			return nil, fault.Wrap(err, fault.UpstreamError,
				"the repository %s cannot be locked for writing; ask the operator to check its permissions", repo.ref)
		case lock != nil:
			return lock, nil
		case ctx.Err() != nil:
			return nil, fault.From(ctx.Err())
		case bounded.Err() != nil:
			return nil, fault.New(fault.Timeout,
				"other claudeops processes have been writing to the repository %s for %s; try again",
				repo.ref, lockWait)
		}
		pause(bounded, lockPause)
	}
}
