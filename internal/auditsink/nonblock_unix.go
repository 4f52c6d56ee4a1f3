//go:build unix

package auditsink

import "golang.org/x/sys/unix"

// nonBlocking keeps a pipe from making us wait for its reader.
const nonBlocking = unix.O_NONBLOCK
