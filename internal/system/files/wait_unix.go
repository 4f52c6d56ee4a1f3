//go:build unix

package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// withoutWaiting opens a named pipe at once, even without a writer, and never makes a terminal the controlling one of
// the process. noLink refuses a link at the name itself.
const (
	withoutWaiting = unix.O_NONBLOCK | unix.O_NOCTTY
	noLink         = unix.O_NOFOLLOW
)

func openFolderUnlinked(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|withoutWaiting|noLink, 0)
}
