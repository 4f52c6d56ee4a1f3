package sandbox

import "golang.org/x/sys/unix"

const (
	filterArch   = unix.AUDIT_ARCH_AARCH64
	otherNumbers = 0xffffffff
)

// refusedCalls change modes, owners and attributes of files, also of those that may be opened for reading alone.
func refusedCalls() []uint32 {
	return []uint32{
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_FSETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_FILE_SETATTR,
	}
}
