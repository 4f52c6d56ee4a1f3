package filemodes

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// file is a file or folder, as a user can reach it.
type file struct {
	user   User
	path   string
	info   fs.FileInfo
	secret bool // it must not be readable either
	ours   bool // the subject or in it, and no folder above it

	owner, group int
	access, made list
	problem      error // of reading the lists
}

// read reads owner, group and access lists; false where the system does not tell.
func (f *file) read() (known bool) {
	if f.owner, f.group, known = ownerOf(f.info); !known {
		return false
	}
	if f.info.Mode()&fs.ModeSymlink == 0 {
		f.access, f.made, f.problem = lists(f.path, f.info.IsDir())
	}
	return true
}

// bits returns a mode's permissions for everybody, or for the group where there is no access list.
func (f *file) bits(shift int) uint16 { return uint16(f.info.Mode().Perm()>>shift) & 0o7 }

// enters reports whether the user may reach what is in a folder.
func (f *file) enters() bool {
	if _, _, known := ownerOf(f.info); !known || !f.info.IsDir() {
		return true // unknown; or a link, and where that leads to is looked at by itself
	}
	const ofOwner, ofGroup = 6, 3
	named := f.access.named(f.user, os.Getuid(), os.Getgid())
	_, entersByName := named.gives(mayEnter)
	group := f.access.group(f.bits(ofGroup))&mayEnter != 0
	member := slices.Contains(f.user.Groups, f.group)
	switch {
	case f.problem != nil || entersByName:
		return true
	case f.user.Known && f.owner == f.user.UID:
		return f.bits(ofOwner)&mayEnter != 0
	case f.user.Known && (member || len(named) > 0):
		return member && group
	case !f.user.Known && group:
		return true
	}
	return f.bits(0)&mayEnter != 0
}

// wrong says why the user could change (or, of a secret, read) something; "" if they could not.
func (f *file) wrong() string {
	if f.info.Mode()&fs.ModeSymlink != 0 {
		return "" // where a link leads to is looked at by itself
	}
	if f.problem != nil {
		return fmt.Sprintf("has an access list that cannot be read: %v", f.problem)
	}
	own, member := f.user.Known && f.owner == f.user.UID, f.user.Known && slices.Contains(f.user.Groups, f.group)
	if !f.user.Known { // any other user, but root, who can do everything
		own = f.owner != 0 && f.owner != os.Getuid() && !f.user.AnyOwner
		member = f.group != 0 && f.group != os.Getgid() // a user's own group, as a umask of 002 expects
	}
	const ofGroup = 3
	mode, other, group := f.info.Mode().Perm(), f.bits(0), f.access.group(f.bits(ofGroup))
	sticky := f.info.IsDir() && f.info.Mode()&fs.ModeSticky != 0
	switch quoted := f.quoted(); {
	case own:
		return fmt.Sprintf("belongs to user %d (mode %04o); chown %d %s", f.owner, mode, os.Getuid(), quoted)
	case other&mayWrite != 0 && !sticky:
		return fmt.Sprintf("can be written by everybody (mode %04o, owner %d); chmod o-w %s", mode, f.owner, quoted)
	case group&mayWrite != 0 && member && !sticky:
		return fmt.Sprintf("can be written by group %d (mode %04o, owner %d); chmod g-w %s", f.group, mode, f.owner, quoted)
	case f.secret && other&mayRead != 0:
		return fmt.Sprintf("can be read by everybody (mode %04o, owner %d); %s", mode, f.owner, ours(f.owner, quoted))
	case f.secret && group&mayRead != 0 && member:
		return fmt.Sprintf("can be read by group %d (mode %04o, owner %d); %s", f.group, mode, f.owner, ours(f.owner, quoted))
	}
	return f.listed(sticky)
}

// listed says what the access lists give the user.
func (f *file) listed(sticky bool) string {
	named, made := f.access.named(f.user, os.Getuid(), os.Getgid()), f.made.named(f.user, os.Getuid(), os.Getgid())
	if e, gives := named.gives(mayWrite); gives && !sticky {
		return fmt.Sprintf("can be written by %s, by its access list; setfacl -x %s %s", e, e.who(), f.quoted())
	}
	if e, gives := named.gives(mayRead); gives && f.secret {
		return fmt.Sprintf("can be read by %s, by its access list; setfacl -x %s %s", e, e.who(), f.quoted())
	}
	if e, gives := made.gives(mayWrite); gives && f.ours {
		return fmt.Sprintf("gives what is made in it to %s to write, by its default access list; setfacl -x d:%s %s", e,
			e.who(), f.quoted())
	}
	return ""
}

// quoted returns the path for a shell.
func (f *file) quoted() string { return "'" + strings.ReplaceAll(f.path, "'", `'\''`) + "'" }

// ours returns the command that makes a file readable for this process's user alone.
func ours(owner int, quoted string) string {
	if us := os.Getuid(); owner != us {
		return fmt.Sprintf("chown %d %s && chmod 600 %s", us, quoted, quoted)
	}
	return "chmod 600 " + quoted
}
