package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// self is this program.
const self = "/proc/self/exe"

// entryFile is the file descriptor from which the helper reads its entry.
const entryFile = 3

// Enter runs the helper: it confines itself and becomes the command. It returns, with the exit code of its process,
// only if that failed, and then the command was not started.
func Enter() int {
	runtime.LockOSThread() // some steps are those of one thread, which then becomes the command
	e, err := readEntry()
	if err != nil {
		return fail(errors.New(HelperCommand + " is started by claudeops itself, when a session or a script begins"))
	}
	if err := e.confine(); err != nil {
		return fail(err)
	}
	if err := syscall.Exec(e.Path, e.Args, e.Env); err != nil { //nolint:gosec // that is what it is for
		return fail(fmt.Errorf("%s cannot be run: %w", e.Path, err))
	}
	return ExitNotConfined // not reached
}

func readEntry() (e helperInput, err error) {
	const most = 8 << 20
	f := os.NewFile(entryFile, "entry")
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	return e, errors.Join(err, f.Close())
}

// confine gives up, step by step, what the command may not have. The order matters: each step needs rights that a later
// one takes.
func (e *helperInput) confine() error {
	parent := unix.Getppid()
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"limits", e.limit},
		{"user", e.becomeUser},
		{"capabilities", dropCapabilities},
		{"end with its parent", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }},
		{"no new rights", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"keyring", ownKeyring},
		{"working folder", func() error { return os.Chdir(e.Dir) }},
		{"files", func() error { return unix.CloseRange(entryFile, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) }},
		{"filters so far", e.countFilters},
		{"landlock", e.restrict},
		{"system calls", e.filter},
		{"check", e.verifyEffect},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if unix.Getppid() != parent {
		return errors.New("what started it has ended")
	}
	return nil
}

// limit sets the limits of resources. They apply to all descendants of the process, and cannot be raised again.
func (e *helperInput) limit() error {
	const ownFiles = 0o077
	if !e.Modes {
		unix.Umask(ownFiles)
	}
	set := func(what int, most uint64) error { return unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}) }
	err := set(unix.RLIMIT_CORE, 0) // a core is memory in a file
	if n := e.Limits.FileBytes; n > 0 {
		err = errors.Join(err, set(unix.RLIMIT_FSIZE, uint64(n)))
	}
	if n := e.Limits.Threads; n > 0 && e.Account != nil { // of our own user the reaper has counted those that there are
		err = errors.Join(err, set(unix.RLIMIT_NPROC, uint64(n)))
	}
	return err
}

// becomeUser becomes the agents' user, with its group and that of all agents alone.
func (e *helperInput) becomeUser() error {
	if e.Account == nil {
		return nil
	}
	if e.Account.UID <= 0 || e.Account.GID <= 0 {
		return errors.New("root is not a user for agents")
	}
	if err := syscall.Setgroups(e.Account.groups()); err != nil { // those of syscall hold for all threads
		return err
	}
	if err := syscall.Setresgid(e.Account.GID, e.Account.GID, e.Account.GID); err != nil {
		return err
	}
	return syscall.Setresuid(e.Account.UID, e.Account.UID, e.Account.UID)
}

// dropCapabilities gives up all capabilities, those too that a program could bring.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // needs a capability, and no_new_privs has the same effect
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // before Linux 4.3 there is none
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// ownKeyring gives the process a session keyring of its own, without a name, in place of the one inherited from the
// starter of claudeops. Where the kernel has no keys, or a container forbids them, there is none to inherit; the user's
// own keyrings are closed by the filter.
func ownKeyring() error {
	const anonymous = 0
	_, _, e := unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, anonymous, 0)
	if e == 0 || e == unix.ENOSYS || e == unix.EPERM {
		return nil
	}
	return e
}

// verifyEffect looks whether the steps had their effect.
func (e *helperInput) verifyEffect() error {
	if e.Account != nil {
		uid, euid, suid := unix.Getresuid()
		gid, egid, sgid := unix.Getresgid()
		groups, err := unix.Getgroups()
		u, g := e.Account.UID, e.Account.GID
		if err != nil || uid != u || euid != u || suid != u || gid != g || egid != g || sgid != g ||
			!slices.Equal(groups, e.Account.groups()) {
			return errors.New("the process did not become the user")
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	for _, c := range have {
		if c.Effective|c.Permitted|c.Inheritable != 0 {
			return errors.New("the process kept capabilities")
		}
	}
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set != 1 {
		return errors.New("the process could still gain rights")
	}
	return e.verifyFiltered()
}

// countFilters counts the filters of system calls that the thread has already, such as that of a container. What it
// opens can be read once more whatever Landlock then keeps from being opened.
func (e *helperInput) countFilters() (err error) {
	if filterArch == 0 {
		return nil
	}
	if e.status, _ = os.Open("/proc/thread-self/status"); e.status == nil {
		return nil // then verifyFiltered can tell less
	}
	e.filters, e.counted, err = filtersIn(e.status)
	return err
}

// filtersIn returns the number of filters that the status of a thread names; counted is false before Linux 5.9, which
// does not name it.
func filtersIn(status io.ReaderAt) (n int, counted bool, err error) {
	const most = 64 << 10
	text, err := io.ReadAll(io.NewSectionReader(status, 0, most))
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "Seccomp_filters:"); found {
			n, err = strconv.Atoi(strings.TrimSpace(value))
			return n, err == nil, err
		}
	}
	return 0, false, nil
}

// verifyFiltered looks whether the thread has one filter more than before. Where the number is not known, it looks
// whether there is any, which may be a container's.
func (e *helperInput) verifyFiltered() error {
	if filterArch == 0 {
		return nil
	}
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	filtered := mode == unix.SECCOMP_MODE_FILTER
	if e.counted && err == nil {
		var now int
		now, _, err = filtersIn(e.status)
		filtered = filtered && now == e.filters+1
	}
	if err != nil || !filtered {
		return errors.Join(errors.New("system calls are not filtered"), err)
	}
	return nil
}

// configOf returns the access rights that a version of Landlock handles.
func configOf(abi int) (landlock.Config, error) {
	all := []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9,
		landlock.V10, landlock.V11,
	}
	if abi < 1 || abi > len(all) {
		return landlock.Config{}, fmt.Errorf("version %d of Landlock is not known", abi)
	}
	return all[abi-1], nil
}

// restrict puts the process under the rules of Landlock, for ever. It fails where the kernel has not all of what the
// boundary's ABI stands for.
func (e *helperInput) restrict() error {
	abi := e.Boundary.ABI
	if abi == 0 {
		return nil
	}
	config, err := configOf(abi)
	if err != nil {
		return err
	}
	rules := e.pathRules(abi)
	if e.Ports == nil {
		config.HandledAccessNet = 0
	} else if e.Boundary.LimitsPorts() {
		rules = append(rules, e.portRules(abi)...)
	} else {
		return errors.New("TCP cannot be limited with this version of Landlock")
	}
	return config.Restrict(rules...)
}

// pathRules permit what the profile names, or with User all that is not hidden.
func (e *helperInput) pathRules(abi int) []landlock.Rule {
	hidden := resolvedAsFar(e.Hidden)
	if e.Account != nil {
		all := pathRules(abi, []string{"/"}, hidden, permission{change: true, devices: true, sockets: true})
		return append(all, landlock.PathAccess(ll.AccessFSReadDir, "/")) // the names in folders are left to their modes
	}
	rules := pathRules(abi, resolved(e.Read), hidden, permission{})
	rules = append(rules, pathRules(abi, resolved(e.Write), hidden, permission{change: true})...)
	rules = append(rules, pathRules(abi, resolved(e.Devices), hidden, permission{change: true, devices: true})...)
	return append(rules, pathRules(abi, resolved(e.Sockets), hidden, permission{change: true, sockets: true})...)
}

// portRules permit TCP to the ports, and the questions that find the addresses of names.
func (e *helperInput) portRules(abi int) (rules []landlock.Rule) {
	for _, port := range e.Ports {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	if e.NoUDP {
		return rules
	}
	if abi >= abiUDP {
		rules = append(rules, landlock.ConnectSendUDP(namePort), landlock.BindUDP(0))
	}
	return append(rules, landlock.ConnectTCP(namePort))
}

// permission is the permission that a rule gives.
type permission struct {
	change  bool // to write, make, move and remove, beside reading and executing
	devices bool // to control devices
	sockets bool // to connect to sockets of processes outside
}

// pathRules returns rules that permit something with paths, which have no links, as far as nothing in them is hidden.
func pathRules(abi int, paths, hidden []string, p permission) (rules []landlock.Rule) {
	var folders, files []string
	for _, path := range paths {
		for _, part := range carve(path, hidden) {
			info, err := os.Lstat(part)
			switch {
			case err != nil: // it has gone
			case info.IsDir():
				folders = append(folders, part)
			default:
				files = append(files, part)
			}
		}
	}
	ofFolders, ofFiles := landlock.RODirs(folders...), landlock.ROFiles(files...)
	if p.change {
		ofFolders, ofFiles = landlock.RWDirs(folders...), landlock.RWFiles(files...)
		if abi >= abiMove {
			ofFolders = ofFolders.WithRefer()
		}
	}
	for _, rule := range []landlock.FSRule{ofFolders, ofFiles} {
		rule = rule.IgnoreIfMissing()
		if p.devices && abi >= abiDevices {
			rule = rule.WithIoctlDev()
		}
		if p.sockets && abi >= abiSockets {
			rule = rule.WithResolveUnix()
		}
		rules = append(rules, rule)
	}
	return rules
}

// Where seccomp(2) shows a filter what is asked for: struct seccomp_data, as the kernel lays it out.
const (
	numberAt      = 0
	archAt        = 4
	argumentAt    = 16 // the lower half of the first argument, where the lower half comes first
	argumentBytes = 8
)

// filter refuses system calls, permanently and for all descendants of the process: calls that the rules of files, users
// and ports would not stop, and calls whose effects would outlive the session.
func (e *helperInput) filter() error {
	if filterArch == 0 {
		return nil
	}
	return installFilter(e.filterProgram())
}

func installFilter(instructions []bpf.Instruction) error {
	program, err := bpf.Assemble(instructions)
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
func (e *helperInput) filterProgram() []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: filterArch, SkipTrue: 1},
		denySyscall(unix.EPERM),
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherNumbers, SkipTrue: 1},
		denySyscall(unix.EPERM),
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

func (e *helperInput) filteredCalls() (calls []filtered) {
	for _, number := range leavingCalls() {
		// as on a kernel without them, for which programs are prepared
		calls = append(calls, filtered{number, []bpf.Instruction{denySyscall(unix.ENOSYS)}})
	}
	calls = append(calls, e.socketCalls()...)
	if e.Boundary.Kind != Landlock {
		return calls
	}
	for _, number := range refusedCalls() {
		if e.Modes {
			break
		}
		calls = append(calls, filtered{number, []bpf.Instruction{denySyscall(unix.EPERM)}})
	}
	const itself = 0
	return append(calls, filtered{unix.SYS_PRLIMIT64, chain(argument(0), ifEqual(itself, allow()),
		denySyscall(unix.EPERM))})
}

// argument reads the lower half of an argument, which is all that the kernel takes of an int.
func argument(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: argumentAt + argumentBytes*n, Size: 4}
}

func allow() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW} }

func denySyscall(errno unix.Errno) bpf.Instruction {
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
