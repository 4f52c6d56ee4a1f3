package confine

import (
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where seccomp(2) shows a filter what is asked for: struct seccomp_data, as the kernel lays it out.
const (
	numberAt      = 0
	archAt        = 4
	argumentAt    = 16 // the lower half of the first argument, where the lower half comes first
	argumentBytes = 8
)

// filter refuses system calls, permanently and for all descendants of the process: calls that the rules of files, users
// and ports would not stop, and calls whose effects would outlive the session.
func (e *entry) filter() error {
	if filterArch == 0 {
		return nil
	}
	program, err := bpf.Assemble(e.filterProgram())
	if err != nil {
		return err
	}
	filters := make([]unix.SockFilter, len(program))
	for i, p := range program {
		filters[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}                                 //nolint:gosec // some hundred
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0) //nolint:gosec // the system call wants it so
}

// filterProgram returns the filter. System calls of another architecture, which have other numbers, are refused
// altogether.
func (e *entry) filterProgram() []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: filterArch, SkipTrue: 1},
		refuse(unix.EPERM),
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherNumbers, SkipTrue: 1},
		refuse(unix.EPERM),
	}
	for _, call := range e.filteredCalls() {
		program = append(program, ifEqual(call.number, call.then...)...)
	}
	return append(program, allow())
}

// filtered is the answer of the filter to one system call. Its instructions end with an answer.
type filtered struct {
	number uint32
	then   []bpf.Instruction
}

func (e *entry) filteredCalls() (calls []filtered) {
	for _, number := range leavingCalls() {
		// as on a kernel without them, for which programs are prepared
		calls = append(calls, filtered{number, []bpf.Instruction{refuse(unix.ENOSYS)}})
	}
	calls = append(calls, e.socketCalls()...)
	if e.Boundary.Kind != Landlock {
		return calls
	}
	for _, number := range refusedCalls() {
		if e.Modes {
			break
		}
		calls = append(calls, filtered{number, []bpf.Instruction{refuse(unix.EPERM)}})
	}
	const itself = 0
	return append(calls, filtered{unix.SYS_PRLIMIT64, chain(argument(0), ifEqual(itself, allow()), refuse(unix.EPERM))})
}

// argument reads the lower half of an argument, which is all that the kernel takes of an int.
func argument(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: argumentAt + argumentBytes*n, Size: 4}
}

func allow() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW} }

func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// ifEqual does something, which ends with an answer, where what was read is a value.
func ifEqual(value uint32, then ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(then))}}, then...) //nolint:gosec // some dozen
}

// chain puts instructions and lists of them in a row.
func chain(parts ...any) (out []bpf.Instruction) {
	for _, part := range parts {
		switch p := part.(type) {
		case bpf.Instruction:
			out = append(out, p)
		case []bpf.Instruction:
			out = append(out, p...)
		}
	}
	return out
}
