//go:build linux && (amd64 || arm64)

package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// leavingCalls make what lasts longer than a process and lies in no folder, so that a session would leave it to the
// next one, or find there what the operator keeps: keys, System V's and POSIX's means to share. And those by which a
// ring of requests does what no filter sees.
func leavingCalls() []uint32 {
	return []uint32{
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	}
}

// socketCalls permits sockets of this machine and of the internet's protocols, and those for reading addresses and
// routes. Where TCP is limited to ports, of the internet's protocols it permits only those that the limit applies to:
// Landlock sees neither another protocol, nor a connection that is made by sending, nor listen(2) on a socket that was
// never bound, for which the kernel takes a port on all addresses. A filter sees the number of a socket and not its
// family, so listening and accepting are refused for unix sockets as well.
func (e *helperInput) socketCalls() []filtered {
	const fastOpen = 0x20000000 // MSG_FASTOPEN
	internet := []bpf.Instruction{allow()}
	if e.Ports != nil {
		internet = e.limitedSockets()
	}
	otherFamily := denySyscall(unix.EAFNOSUPPORT)
	calls := []filtered{
		{unix.SYS_SOCKET, chain(
			argument(0),
			ifEqual(unix.AF_UNIX, allow()),
			ifEqual(unix.AF_NETLINK, chain(argument(2), ifEqual(unix.NETLINK_ROUTE, allow()), otherFamily)...),
			ifEqual(unix.AF_INET, internet...),
			ifEqual(unix.AF_INET6, internet...),
			otherFamily,
		)},
		{unix.SYS_SOCKETPAIR, chain(argument(0), ifEqual(unix.AF_UNIX, allow()), otherFamily)},
	}
	if e.Ports == nil {
		return calls
	}
	byFlags := func(number, flags uint32) filtered {
		return filtered{number, chain(argument(flags), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: fastOpen, SkipTrue: 1},
			denySyscall(unix.EOPNOTSUPP), allow())}
	}
	const level, option = 1, 2
	noOption := denySyscall(unix.ENOPROTOOPT)
	for _, number := range []uint32{unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4} {
		calls = append(calls, filtered{number, []bpf.Instruction{denySyscall(unix.EACCES)}})
	}
	return append(calls, byFlags(unix.SYS_SENDTO, 3), byFlags(unix.SYS_SENDMSG, 2), byFlags(unix.SYS_SENDMMSG, 3),
		filtered{unix.SYS_SETSOCKOPT, chain(
			argument(level),
			ifEqual(unix.IPPROTO_TCP, chain(
				argument(option),
				ifEqual(unix.TCP_FASTOPEN_CONNECT, noOption),
				ifEqual(unix.TCP_ULP, noOption), // makes another protocol of a connection
				allow(),
			)...),
			allow(),
		)})
}

// limitedSockets filters internet sockets where TCP is limited to ports: it permits TCP itself and, unless names need
// not be looked up, UDP.
func (e *helperInput) limitedSockets() []bpf.Instruction {
	const kindBits, asKind, protocol = 0xf, 0, 2
	otherProtocol := denySyscall(unix.EPROTONOSUPPORT)
	only := func(number uint32) []bpf.Instruction {
		return chain(argument(protocol), ifEqual(asKind, allow()), ifEqual(number, allow()), otherProtocol)
	}
	var datagrams []bpf.Instruction
	if !e.NoUDP {
		datagrams = ifEqual(unix.SOCK_DGRAM, only(unix.IPPROTO_UDP)...)
	}
	return chain(
		argument(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kindBits},
		ifEqual(unix.SOCK_STREAM, only(unix.IPPROTO_TCP)...),
		datagrams,
		otherProtocol,
	)
}
