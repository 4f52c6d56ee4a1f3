//go:build unix

package session

import (
	"os"

	"github.com/claudeops/claudeops/internal/filelock"
)

// tryLock takes an exclusive lock on the open file if it can be had at once.
func tryLock(f *os.File) (taken bool, err error) { return filelock.Try(f, true) }
