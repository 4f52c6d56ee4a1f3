package filemodes

import (
	"encoding/binary"
	"fmt"
	"slices"
)

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

// entry is one of an access list.
type entry struct {
	tag, perm uint16
	id        int // of tagUser and tagNamed
}

// list is a POSIX access list (acl(5)). The zero value is that of a file whose mode says everything.
type list []entry

// parseList reads what the kernel keeps as an extended attribute: version 2, and eight bytes for each entry, least
// significant byte first.
func parseList(raw []byte) (list, error) {
	const version, header, size = 2, 4, 8
	if len(raw) < header || binary.LittleEndian.Uint32(raw) != version || (len(raw)-header)%size != 0 {
		return nil, fmt.Errorf("%d bytes that are no access list of version 2", len(raw))
	}
	var out list
	for rest := raw[header:]; len(rest) > 0; rest = rest[size:] {
		out = append(out, entry{
			tag: binary.LittleEndian.Uint16(rest), perm: binary.LittleEndian.Uint16(rest[2:]),
			id: int(binary.LittleEndian.Uint32(rest[4:])),
		})
	}
	return out, nil
}

// mask returns the upper bound on the permissions of entries for a user or a group.
func (l list) mask() uint16 {
	for _, e := range l {
		if e.tag == tagMask {
			return e.perm
		}
	}
	return mayRead | mayWrite | mayEnter
}

// group returns the permissions of the file's group; bits are the mode's bits for the group, which are the mask if
// there is a list.
func (l list) group(bits uint16) uint16 {
	for _, e := range l {
		if e.tag == tagGroup {
			return e.perm & l.mask()
		}
	}
	return bits
}

// named lists the entries of users and of groups that a user is or is in, each with what it gives.
func (l list) named(user User, us, ours int) (out list) {
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
func (l list) gives(perm uint16) (entry, bool) {
	at := slices.IndexFunc(l, func(e entry) bool { return e.perm&perm != 0 })
	if at < 0 {
		return entry{}, false
	}
	return l[at], true
}

// who returns the user or the group of an entry, as setfacl(1) names it.
func (e entry) who() string {
	if e.tag == tagUser {
		return fmt.Sprintf("u:%d", e.id)
	}
	return fmt.Sprintf("g:%d", e.id)
}

// String describes the entry for people.
func (e entry) String() string {
	if e.tag == tagUser {
		return fmt.Sprintf("user %d", e.id)
	}
	return fmt.Sprintf("group %d", e.id)
}
