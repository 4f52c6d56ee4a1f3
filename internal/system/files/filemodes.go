// This file says who else could change a file, by its owner, its mode and its access list (POSIX, on Linux) and those
// of every folder above it. What Claude Ops reads of the operator's (the policy, prompts, scripts) and keeps for
// itself (keys, records) is worth nothing if an agent can write it.

package files

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ModeUser is the user who must not be able to change a file. The zero value, with Known false, stands for every user
// but root and that of this process.
type ModeUser struct {
	Known  bool
	UID    int
	Groups []int // all of them
	// AnyOwner ignores who owns a file where no user is known: only a mode's permissions for others count.
	AnyOwner bool
}

// ModeSubject is a file or folder that is looked at.
type ModeSubject struct {
	What   string // for people, such as "the key of the marks"
	Path   string
	Secret bool // it must not be readable either
	Tree   bool // everything in the folder is looked at, too: at most 2,000 files
}

// ModeProblem says why a subject can be changed.
type ModeProblem struct {
	What string
	// the file or folder whose owner, mode or access list is wrong: the subject, something in it, or a folder above it
	Path string
	Why  string // the present state, and the command that corrects it
}

func (p ModeProblem) String() string { return fmt.Sprintf("%s: %s %s", p.What, p.Path, p.Why) }

// maxTree bounds how many files of a folder are looked at.
const maxTree = 2000

// FindModeProblems looks at the subjects, and lists what is wrong: at most one problem for each subject. What does not
// exist is passed over, but the folders above it are looked at. Symbolic links are followed, and the folders that hold
// them are looked at as well.
func FindModeProblems(user ModeUser, subjects []ModeSubject) (out []ModeProblem) {
	for _, s := range subjects {
		if s.Path == "" {
			continue
		}
		if p, bad := checkSubject(user, s); bad {
			p.What = s.What
			out = append(out, p)
		}
	}
	return out
}

func checkSubject(user ModeUser, s ModeSubject) (ModeProblem, bool) {
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return ModeProblem{}, false
	}
	if p, bad := lookUp(user, path, s.Secret); bad {
		return p, true
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil && resolved != path {
		if p, bad := lookUp(user, resolved, s.Secret); bad {
			return p, true
		}
	}
	if err != nil || !s.Tree {
		return ModeProblem{}, false
	}
	return lookInto(user, resolved)
}

// lookUp looks at a path and every folder above it, from the root on.
func lookUp(user ModeUser, path string, secret bool) (ModeProblem, bool) {
	steps := []string{path}
	for at := path; filepath.Dir(at) != at; {
		at = filepath.Dir(at)
		steps = append(steps, at)
	}
	slices.Reverse(steps)
	for i, step := range steps {
		info, err := os.Lstat(step)
		if err != nil {
			return ModeProblem{}, false // what is below does not exist, or cannot be seen
		}
		last := i == len(steps)-1
		f := modeFile{user: user, path: step, info: info, secret: secret && last, ours: last}
		if f.readAccess() {
			if why := f.wrong(); why != "" {
				return ModeProblem{Path: step, Why: why}, true
			}
		}
		if !last && !f.enters() {
			return ModeProblem{}, false // whatever the modes below say, no other user reaches them
		}
	}
	return ModeProblem{}, false
}

// lookInto looks at what is in a folder.
func lookInto(user ModeUser, folder string) (out ModeProblem, bad bool) {
	seen := 0
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // what cannot be read is passed over
		if err != nil || bad {
			return nil //nolint:nilerr // as above
		}
		if seen++; seen > maxTree {
			return fs.SkipAll
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		f := modeFile{user: user, path: path, info: info, ours: true}
		if !f.readAccess() {
			return nil
		}
		if why := f.wrong(); why != "" {
			out, bad = ModeProblem{Path: path, Why: why}, true
		}
		return nil
	})
	return out, bad
}

// modeFile is a file or folder, as a user can reach it.
type modeFile struct {
	user   ModeUser
	path   string
	info   fs.FileInfo
	secret bool // it must not be readable either
	ours   bool // the subject or in it, and no folder above it

	owner, group int
	access, made accessList
	problem      error // of reading the lists
}

// readAccess reads owner, group and access lists; false where the system does not tell.
func (f *modeFile) readAccess() (known bool) {
	if f.owner, f.group, known = ownerOf(f.info); !known {
		return false
	}
	if f.info.Mode()&fs.ModeSymlink == 0 {
		f.access, f.made, f.problem = readLists(f.path, f.info.IsDir())
	}
	return true
}

// bits returns a mode's permissions for everybody, or for the group where there is no access list.
func (f *modeFile) bits(shift int) uint16 { return uint16(f.info.Mode().Perm()>>shift) & 0o7 }

// enters reports whether the user may reach what is in a folder.
func (f *modeFile) enters() bool {
	if _, _, known := ownerOf(f.info); !known || !f.info.IsDir() {
		return true // unknown; or a link, and where that leads to is looked at by itself
	}
	const ofOwner, ofGroup = 6, 3
	named := f.access.entriesFor(f.user, os.Getuid(), os.Getgid())
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
func (f *modeFile) wrong() string {
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
	switch quoted := f.shellPath(); {
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
	return f.aclProblem(sticky)
}

// aclProblem says what the access lists give the user.
func (f *modeFile) aclProblem(sticky bool) string {
	named, made := f.access.entriesFor(f.user, os.Getuid(), os.Getgid()), f.made.entriesFor(f.user, os.Getuid(),
		os.Getgid())
	if e, gives := named.gives(mayWrite); gives && !sticky {
		return fmt.Sprintf("can be written by %s, by its access list; setfacl -x %s %s", e, e.who(), f.shellPath())
	}
	if e, gives := named.gives(mayRead); gives && f.secret {
		return fmt.Sprintf("can be read by %s, by its access list; setfacl -x %s %s", e, e.who(), f.shellPath())
	}
	if e, gives := made.gives(mayWrite); gives && f.ours {
		return fmt.Sprintf("gives what is made in it to %s to write, by its default access list; setfacl -x d:%s %s", e,
			e.who(), f.shellPath())
	}
	return ""
}

// shellPath returns the path for a shell.
func (f *modeFile) shellPath() string { return "'" + strings.ReplaceAll(f.path, "'", `'\''`) + "'" }

// ours returns the command that makes a file readable for this process's user alone.
func ours(owner int, quoted string) string {
	if us := os.Getuid(); owner != us {
		return fmt.Sprintf("chown %d %s && chmod 600 %s", us, quoted, quoted)
	}
	return "chmod 600 " + quoted
}

// Permissions, as in a mode's last three bits.
const (
	mayRead  = 0o4
	mayWrite = 0o2
	mayEnter = 0o1 // of folders
)

// Tags of the entries of an access list; linux/posix_acl.h.
const (
	tagOwner = 0x01
	tagUser  = 0x02
	tagGroup = 0x04 // the file's
	tagNamed = 0x08 // another group
	tagMask  = 0x10
	tagOther = 0x20
)

// aclEntry is one of an access list.
type aclEntry struct {
	tag, perm uint16
	id        int // of tagUser and tagNamed
}

// accessList is a POSIX access list (acl(5)). The zero value is that of a file whose mode says everything.
type accessList []aclEntry

// parseList reads what the kernel keeps as an extended attribute: version 2, and eight bytes for each entry, least
// significant byte first.
func parseList(raw []byte) (accessList, error) {
	const version, header, size = 2, 4, 8
	if len(raw) < header || binary.LittleEndian.Uint32(raw) != version || (len(raw)-header)%size != 0 {
		return nil, fmt.Errorf("%d bytes that are not an access list of version 2", len(raw))
	}
	var out accessList
	for rest := raw[header:]; len(rest) > 0; rest = rest[size:] {
		out = append(out, aclEntry{
			tag: binary.LittleEndian.Uint16(rest), perm: binary.LittleEndian.Uint16(rest[2:]),
			id: int(binary.LittleEndian.Uint32(rest[4:])),
		})
	}
	return out, nil
}

// mask returns the upper bound on the permissions of entries for a user or a group.
func (l accessList) mask() uint16 {
	for _, e := range l {
		if e.tag == tagMask {
			return e.perm
		}
	}
	return mayRead | mayWrite | mayEnter
}

// group returns the permissions of the file's group; bits are the mode's bits for the group, which are the mask if
// there is a list.
func (l accessList) group(bits uint16) uint16 {
	for _, e := range l {
		if e.tag == tagGroup {
			return e.perm & l.mask()
		}
	}
	return bits
}

// entriesFor lists the entries of users and of groups that a user is or is in, each with what it gives.
func (l accessList) entriesFor(user ModeUser, us, ours int) (out accessList) {
	for _, e := range l {
		matches := false
		switch e.tag {
		case tagUser:
			matches = user.Known && e.id == user.UID || !user.Known && e.id != 0 && e.id != us
		case tagNamed:
			matches = user.Known && slices.Contains(user.Groups, e.id) || !user.Known && e.id != 0 && e.id != ours
		}
		if matches {
			e.perm &= l.mask()
			out = append(out, e)
		}
	}
	return out
}

// gives returns an entry that gives a permission; false if none does.
func (l accessList) gives(perm uint16) (aclEntry, bool) {
	at := slices.IndexFunc(l, func(e aclEntry) bool { return e.perm&perm != 0 })
	if at < 0 {
		return aclEntry{}, false
	}
	return l[at], true
}

// who returns the user or the group of an entry, as setfacl(1) names it.
func (e aclEntry) who() string {
	if e.tag == tagUser {
		return fmt.Sprintf("u:%d", e.id)
	}
	return fmt.Sprintf("g:%d", e.id)
}

// String describes the entry for people.
func (e aclEntry) String() string {
	if e.tag == tagUser {
		return fmt.Sprintf("user %d", e.id)
	}
	return fmt.Sprintf("group %d", e.id)
}
