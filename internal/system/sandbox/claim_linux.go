package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// asRoot runs f as the owner of root's files, which takes the right to switch users, and with no capability where this
// process is not root itself.
func asRoot(f func() error) error {
	return processtree.OnThread(func() error {
		if os.Geteuid() != 0 {
			if err := filesOf(0, 0); err != nil {
				return err
			}
		}
		return f()
	})
}

// Usable says why users cannot be claimed; nil if they can.
func (u Users) Usable() error { return asRoot(u.createDir) }

// createDir makes the folder of the claims, and looks whether it is root's alone.
func (u Users) createDir() error {
	if err := os.Mkdir(u.Folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("root has to be able to write %s: %w", u.Folder, err)
	}
	for _, folder := range []string{u.Folder, filepath.Dir(u.Folder)} {
		const others, sticky = 0o022, unix.S_ISVTX
		var info unix.Stat_t
		if err := unix.Lstat(folder, &info); err != nil {
			return &os.PathError{Op: "lstat", Path: folder, Err: err}
		}
		if info.Mode&unix.S_IFMT != unix.S_IFDIR || info.Uid != 0 || info.Mode&others != 0 &&
			(info.Mode&sticky == 0 || folder == u.Folder) {
			return fmt.Errorf("%s is not a folder that only root can write", folder)
		}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, u.Folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("root has to be able to write %s: %w", u.Folder, err)
	}
	return nil
}

// Claim claims one of the users, the one that was claimed the longest time ago, ends what it still runs and removes
// what it left. ErrAllClaimed if there is none. Where users cannot be claimed at all (Usable), it is the first one,
// which other sessions may have as well: then nothing is ended or removed.
func (u Users) Claim() (*Claim, error) {
	if len(u.Accounts) == 0 {
		return nil, errors.New("there is no user for agents")
	}
	if u.Usable() != nil {
		return &Claim{Account: u.Accounts[0]}, nil
	}
	var problems []error
	for _, a := range u.byAge() {
		c, err := u.claim(a)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		err = c.clean()
		if err == nil {
			return c, nil
		}
		problems = append(problems, err, c.lock.Close()) // another one may do
	}
	return nil, errors.Join(append([]error{ErrAllClaimed}, problems...)...)
}

// ClaimOne claims the user with a number, and nothing is ended or removed before Release. nil, and no error, if a
// session has it, if it is none of the users, or if users cannot be claimed.
func (u Users) ClaimOne(uid int) (*Claim, error) {
	at := slices.IndexFunc(u.Accounts, func(a Account) bool { return a.UID == uid })
	if at < 0 || u.Usable() != nil {
		return nil, nil
	}
	return u.claim(u.Accounts[at])
}

func (u Users) claimPath(a Account) string { return filepath.Join(u.Folder, strconv.Itoa(a.UID)) }

// byAge returns the users, those first that were claimed never or the longest time ago, so that what is overlooked of a
// session stays apart from the next ones for long.
func (u Users) byAge() []Account {
	claimed := map[int]time.Time{}
	_ = asRoot(func() error { // one that cannot be looked at counts as never claimed
		for _, a := range u.Accounts {
			if info, err := os.Lstat(u.claimPath(a)); err == nil {
				claimed[a.UID] = info.ModTime()
			}
		}
		return nil
	})
	out := slices.Clone(u.Accounts)
	slices.SortStableFunc(out, func(a, b Account) int { return claimed[a.UID].Compare(claimed[b.UID]) })
	return out
}

// claim locks the file of a user; nil, and no error, if somebody else has.
func (u Users) claim(a Account) (c *Claim, err error) {
	err = asRoot(func() error {
		fd, err := unix.Open(u.claimPath(a), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return &os.PathError{Op: "open", Path: u.claimPath(a), Err: err}
		}
		f := os.NewFile(uintptr(fd), u.claimPath(a)) //nolint:gosec // the kernel gave it
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = nil
			}
			return errors.Join(err, f.Close())
		}
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for people; and it is the time of the claim
		c = &Claim{Account: a, lock: f, leavings: u.Leavings}
		return err
	})
	if err != nil && c != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, err
}

// clean ends what the user runs and removes what it left.
func (c *Claim) clean() error {
	return errors.Join(processtree.EndUser(c.Account.UID), c.Account.removeLeavings(c.leavings))
}

// Bounds of the search for what a user left.
const (
	deepestLeaving = 4 // folders in one another that everybody may write
	mostLeavings   = 200_000
)

// removeLeavings removes what the user owns in the folders, and in folders in them that everybody may write.
func (a *Account) removeLeavings(folders []string) error {
	return a.As(func() error {
		left := mostLeavings
		var problems []error
		for _, folder := range folders {
			problems = append(problems, a.removeIn(folder, deepestLeaving, &left))
		}
		return errors.Join(problems...)
	})
}

func (a *Account) removeIn(folder string, depth int, left *int) (problems error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil //nolint:nilerr // where the user cannot look it has left nothing that anybody finds by looking, and most machines lack some of the folders
	}
	for _, entry := range entries {
		if *left--; *left < 0 {
			return errors.Join(problems, fmt.Errorf("%s holds too much to be searched for what user %d left", folder, a.UID))
		}
		path := filepath.Join(folder, entry.Name())
		var info unix.Stat_t
		if unix.Lstat(path, &info) != nil {
			continue
		}
		const everybody = 0o002
		switch isFolder := info.Mode&unix.S_IFMT == unix.S_IFDIR; {
		case int(info.Uid) == a.UID:
			problems = errors.Join(problems, RemoveAll(path))
		case isFolder && info.Mode&everybody != 0 && depth > 1:
			problems = errors.Join(problems, a.removeIn(path, depth-1, left))
		}
	}
	return problems
}

// As runs f with the account's rights on files and none of ours, on a thread of its own: what f makes is the account's,
// and f opens nothing that the account may not, whatever name or link leads there. f must do all its work with files
// before it returns, in no other goroutine. Of no account, f runs as it is.
func (a *Account) As(f func() error) error {
	if a == nil {
		return f()
	}
	return processtree.OnThread(func() error {
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
	return processtree.OnThread(func() error {
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
