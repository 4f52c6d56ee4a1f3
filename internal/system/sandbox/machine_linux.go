package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ThisMachine asks this machine.
func ThisMachine() Machine {
	return Machine{
		ABI: landlockABI(), Filter: filterArch != 0, MaySwitch: maySwitch(), UID: os.Geteuid(), GID: os.Getegid(),
		Accounts: findAccounts,
		Claims:   func() error { return Users{Folder: ClaimFolder}.Usable() }, Doors: doors(os.Geteuid()),
	}
}

// landlockABI returns the version of the kernel's Landlock. One whose rules about signals are broken counts as one
// without.
func landlockABI() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	const scopeMended = 0x2
	if version < abiScopes {
		return version
	}
	if errata, err := ll.LandlockGetErrata(); err != nil || errata&scopeMended == 0 {
		return abiScopes - 1
	}
	return version
}

// maySwitch says why this process may not start processes as another user; nil if it may.
func maySwitch() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	for _, c := range neededCapabilities() {
		if have[0].Effective&(1<<c) == 0 {
			return errors.New(
				"claudeops may not switch users; start it as root with CLAUDEOPS_RUN_AS, or give it CAP_SETUID, CAP_SETGID and CAP_KILL")
		}
	}
	return nil
}

// neededCapabilities returns the capabilities that a supervisor needs whose agents have a user of their own.
func neededCapabilities() []uint { return []uint{unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID} }

// doors returns the sockets of services that run commands for any client, as far as the user may reach them.
func doors(uid int) (out []string) {
	id := strconv.Itoa(uid)
	own := filepath.Join("/run/user", id)
	for _, path := range []string{
		filepath.Join(own, "systemd/private"), filepath.Join(own, "bus"), filepath.Join(own, "docker.sock"),
		filepath.Join(own, "podman/podman.sock"),
		"/run/systemd/private", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		filepath.Join("/tmp", "tmux-"+id, "default"),
	} {
		if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
			continue
		}
		if unix.Access(path, unix.W_OK) == nil {
			out = append(out, path)
		}
	}
	return out
}

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
