package files

import (
	"context"
	"os"
	"time"
)

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 10 * time.Millisecond

// Lock waits until it has a lock on the open file, of the kind that TryLock takes, and tries it at least once. If the
// context ends first, its error is returned. Those who wait have no order among each other.
func Lock(ctx context.Context, f *os.File, exclusive bool) error {
	for {
		if taken, err := TryLock(f, exclusive); taken || err != nil {
			return err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
