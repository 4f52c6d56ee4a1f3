//go:build unix

package operationtest

import (
	"os"
	"syscall"
)

// Special are the makers of what may lie where a file or a folder is read. Package files tests all kinds. Other tests
// take these two, which would hold up a reader for ever, to see which files are read by package files.
func Special() map[string]func(name string) error {
	return map[string]func(name string) error{
		"a named pipe":       func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"a link to a device": func(name string) error { return os.Symlink("/dev/zero", name) },
	}
}
