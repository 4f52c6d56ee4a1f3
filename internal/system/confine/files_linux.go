package confine

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/osthread"
)

// As runs f with the account's rights on files and none of ours, on a thread of its own: what f makes is the account's,
// and f opens nothing that the account may not, whatever name or link leads there. f must do all its work with files
// before it returns, in no other goroutine. Of no account, f runs as it is.
func (a *Account) As(f func() error) error {
	if a == nil {
		return f()
	}
	return osthread.Do(func() error {
		if err := filesOf(a.UID, a.GID, a.groups()...); err != nil {
			return err
		}
		return f()
	})
}

// WithGroup runs f as us, but that what f makes has the account's group. Else it is As.
func (a *Account) WithGroup(f func() error) error {
	if a == nil {
		return f()
	}
	return osthread.Do(func() error {
		if err := filesOf(os.Geteuid(), a.GID); err != nil {
			return err
		}
		return f()
	})
}

// filesOf gives the thread the user and the group for its access to files, and takes all else that it could use
// instead.
func filesOf(uid, gid int, groups ...int) error {
	ids := make([]uint32, 0, len(groups)+1)
	for _, g := range groups {
		ids = append(ids, uint32(g)) //nolint:gosec // more than 0
	}
	// so that there is something to point at; it is not counted
	ids = append(ids, 0)
	at := uintptr(unsafe.Pointer(&ids[0])) //nolint:gosec // the system call wants it so
	// unlike that of the library, of this thread alone
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), at, 0); e != 0 {
		return e
	}
	const ask = -1 // changes nothing, and so tells what it is
	_, _ = unix.SetfsgidRetGid(gid)
	_, _ = unix.SetfsuidRetUid(uid)
	g, _ := unix.SetfsgidRetGid(ask)
	u, _ := unix.SetfsuidRetUid(ask)
	if u != uid || g != gid {
		return errors.New("the files of agents cannot be reached as their user: this process may not switch users")
	}
	if uid == os.Geteuid() {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData // some capabilities would open every file
	return unix.Capset(&header, &none[0])
}

// CanRead says which of the files and folders the account may open.
func (a *Account) CanRead(paths []string) (open []string) {
	if err := a.As(func() error {
		for _, path := range paths {
			if f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
				open = append(open, path)
				_ = f.Close()
			}
		}
		return nil
	}); err != nil {
		return paths // a path that cannot be checked does not count as closed
	}
	return open
}
