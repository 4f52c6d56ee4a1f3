//go:build unix

package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// withoutWaiting opens a named pipe at once, although nobody writes to it, and makes no terminal that of the process.
// noLink refuses a link at the name itself.
const (
	withoutWaiting = unix.O_NONBLOCK | unix.O_NOCTTY
	noLink         = unix.O_NOFOLLOW
)

func openFolderUnlinked(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|withoutWaiting|noLink, 0)
}
