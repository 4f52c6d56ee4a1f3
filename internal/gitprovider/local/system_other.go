//go:build !unix

package local

import (
	"io/fs"
	"os"
	"os/exec"
)

// openFolder and openFile need Unix to tell links and pipes while they open; elsewhere they open what is there.
func openFolder(path string, _ bool) (*os.File, error) { return os.Open(path) }

func openFile(path string) (*os.File, error) { return os.Open(path) }

// writable is true where nothing tells in advance: the write itself then fails.
func writable(string) bool { return true }

// isOurs is true: a user's temporary folder is the user's own there.
func isOurs(fs.FileInfo) bool { return true }

// isolate and endGroup need process groups; elsewhere a cancelled command is killed alone.
func isolate(*exec.Cmd, *writeLock) {}

func endGroup(*exec.Cmd) {}

// writeLock needs flock(2): elsewhere git's own locks keep writers apart, and what a killed process had started is for a
// settlement to find.
type writeLock struct{}

func tryLock(string) (*writeLock, error) { return &writeLock{}, nil }

func (t *writeLock) unlock() {}
