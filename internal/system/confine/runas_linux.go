package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunAs makes this process one of another user and starts the program again. Of root's capabilities it keeps those that
// start and end agents under a user of their own, where it has them: a container starts as root for this alone. The
// process must be root's. It returns only if that fails.
func RunAs(name string, args, env []string) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can become another user")
	}
	a, err := findAccount(name)
	if err != nil {
		return fmt.Errorf("CLAUDEOPS_RUN_AS is %s: %w", name, err)
	}
	if a.UID <= 0 || a.GID <= 0 {
		return fmt.Errorf("CLAUDEOPS_RUN_AS is %s, which is root or has root's group; name a user without rights", name)
	}
	runtime.LockOSThread() // the program is started again from this thread, with its rights
	if err := switchKeeping(a); err != nil {
		return fmt.Errorf("claudeops cannot become %s (CLAUDEOPS_RUN_AS): %w", name, err)
	}
	return syscall.Exec(self, args, env)
}

// switchKeeping makes the thread one of the account, with the capabilities that a supervisor needs as far as the thread
// has them.
func switchKeeping(a *Account) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	var keep uint32
	for _, c := range neededCapabilities() {
		keep |= have[0].Permitted & (1 << c)
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if c >= 32 || keep&(1<<c) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // where that is not permitted, containers have done it
		}
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, uintptr(a.GID), uintptr(a.GID), uintptr(a.GID)},
		{unix.SYS_SETRESUID, uintptr(a.UID), uintptr(a.UID), uintptr(a.UID)},
	} {
		if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
			return e
		}
	}
	now := [2]unix.CapUserData{{Effective: keep, Permitted: keep, Inheritable: keep}}
	if err := unix.Capset(&header, &now[0]); err != nil {
		return err
	}
	for _, c := range neededCapabilities() {
		if keep&(1<<c) == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0); err != nil {
			return err
		}
	}
	return nil
}
