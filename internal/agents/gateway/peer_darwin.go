package gateway

import (
	"net"

	"golang.org/x/sys/unix"
)

// credentials asks the kernel who made the connection.
func credentials(c net.Conn) (Peer, error) {
	var p Peer
	err := control(c, func(fd int) error {
		who, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			return err
		}
		p = Peer{Known: true, UID: int(who.Uid)}
		if pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID); err == nil {
			p.PID = pid
		}
		return nil
	})
	return p, err
}
