package confine

import (
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where seccomp(2) shows a filter what is asked for: struct seccomp_data, as the kernel lays it out.
const (
	numberAt   = 0
	archAt     = 4
	argumentAt = 16 // the lower half of the first argument, where the lower half comes first
)

// filter refuses, under rules of Landlock and our own user, what Landlock leaves to users and what would do harm to our other files and
// processes: to change modes, owners and attributes of files by their path, and limits of another process. With a user of its own the
// kernel refuses these itself.
func (e *entry) filter() error {
	if e.Boundary.Kind != Landlock || filterArch == 0 {
		return nil
	}
	program, err := bpf.Assemble(filterProgram())
	if err != nil {
		return err
	}
	filters := make([]unix.SockFilter, len(program))
	for i, p := range program {
		filters[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}                                 //nolint:gosec // a few dozen
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0) //nolint:gosec // the system call wants it so
}

// filterProgram is the filter. System calls of another architecture, which have other numbers, are refused altogether.
func filterProgram() []bpf.Instruction {
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: filterArch, SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherNumbers, SkipTrue: 1},
		refuse,
	}
	for _, number := range refusedCalls() {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse)
	}
	return append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_PRLIMIT64, SkipTrue: 3},
		bpf.LoadAbsolute{Off: argumentAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, // 0 is the process itself
		refuse,
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	)
}
