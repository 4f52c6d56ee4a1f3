package sandbox

import "golang.org/x/sys/unix"

const (
	filterArch   = unix.AUDIT_ARCH_X86_64
	otherNumbers = 0x40000000 // from here on those of the x32 architecture
)

func refusedCalls() []uint32 {
	return []uint32{
		unix.SYS_CHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
	}
}
