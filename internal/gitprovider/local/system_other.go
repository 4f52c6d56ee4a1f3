//go:build !unix

package local

import (
	"io/fs"
	"os"
)

// isOurs returns true: a user's temporary folder is the user's own there.
func isOurs(fs.FileInfo) bool { return true }

// writeLock needs flock(2): elsewhere git's own locks keep writers apart, and what a killed process had started is for
// a settlement to find.
type writeLock struct{}

func tryLock(string) (*writeLock, error) { return &writeLock{}, nil }

func (t *writeLock) unlock() {}

// files returns the files that a command inherits: none.
func (t *writeLock) files() []*os.File { return nil }
