package door

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Peer is the process at the other end of a socket, as the kernel knows it.
type Peer struct {
	Known bool // UID is
	UID   int
	PID   int // 0 if it is not known
	// Ended reports whether the process has ended, so that PID may name another one by now; nil where the kernel does not
	// say.
	Ended func() bool
	// Release gives up what Ended needs; nil for nothing.
	Release func()
}

func (p Peer) String() string {
	if !p.Known {
		return "a process that the system does not name"
	}
	return fmt.Sprintf("pid %d, uid %d", p.PID, p.UID)
}

// control does something with the socket of a connection.
func control(c net.Conn, do func(fd int) error) error {
	socket, ok := c.(interface {
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok {
		return fmt.Errorf("%T has no socket", c)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = raw.Control(func(fd uintptr) { done = do(int(fd)) })
	return errors.Join(err, done)
}
