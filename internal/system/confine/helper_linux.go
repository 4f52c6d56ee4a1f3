package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"

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

func readEntry() (e entry, err error) {
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
func (e *entry) confine() error {
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
		{"landlock", e.restrict},
		{"system calls", e.filter},
		{"check", e.check},
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
func (e *entry) limit() error {
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
func (e *entry) becomeUser() error {
	if e.Account == nil {
		return nil
	}
	if e.Account.UID <= 0 || e.Account.GID <= 0 {
		return errors.New("root is no user for agents")
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

// check looks whether the steps had their effect.
func (e *entry) check() error {
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
	return nil
}
