package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

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
