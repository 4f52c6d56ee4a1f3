//go:build unix

package local

import (
	"os"
	"syscall"
)

// openFolder opens a folder, and never waits for something that is none. Without follow, a link to one is an error.
func openFolder(path string, follow bool) (*os.File, error) {
	flags := os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	return os.OpenFile(path, flags, 0) // #nosec G304: the operator's repositories
}

// openFile opens a file, and never waits for the writer of a pipe. A link is an error.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0) // #nosec G304: see openFolder
}
