package gateway

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// credentials asks the kernel who made the connection, and for a handle of that process (since Linux 6.5).
func credentials(c net.Conn) (Peer, error) {
	var p Peer
	err := control(c, func(fd int) error {
		who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return err
		}
		p = Peer{Known: true, UID: int(who.Uid), PID: int(who.Pid)}
		if p.PID == 0 {
			return errors.New("the process is in a namespace that is not seen from here")
		}
		handle, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		if err != nil {
			return nil //nolint:nilerr // an older kernel
		}
		p.Ended = func() bool {
			polled := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}} //nolint:gosec // the kernel gave it
			n, err := unix.Poll(polled, 0)
			return err == nil && n > 0
		}
		p.Release = func() { _ = unix.Close(handle) }
		return nil
	})
	return p, err
}
