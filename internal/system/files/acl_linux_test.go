package files_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// access is an access list as setfacl(1) would make it for a file whose owner may do everything: u and g name
// permissions by id.
type access struct {
	group, mask, other uint16
	u, g               map[uint32]uint16
}

// raw returns the kernel's form: by tags, and users and groups by id.
func (a access) raw() []byte {
	const version, unnamed = 2, ^uint32(0)
	out := binary.LittleEndian.AppendUint32(nil, version)
	add := func(tag, perm uint16, id uint32) {
		out = binary.LittleEndian.AppendUint16(out, tag)
		out = binary.LittleEndian.AppendUint16(out, perm)
		out = binary.LittleEndian.AppendUint32(out, id)
	}
	add(0x01, 7, unnamed)
	for id, perm := range a.u {
		add(0x02, perm, id)
	}
	add(0x04, a.group, unnamed)
	for id, perm := range a.g {
		add(0x08, perm, id)
	}
	add(0x10, a.mask, unnamed)
	add(0x20, a.other, unnamed)
	return out
}

func setList(t *testing.T, path, kind string, a access) {
	t.Helper()
	if err := unix.Setxattr(path, "system.posix_acl_"+kind, a.raw(), 0); err != nil {
		t.Fatalf("%s: %v; the file system of TMPDIR has to have access lists", path, err)
	}
}

const (
	anAgent      = 54321 // owns nothing here
	agentsGroup  = 54322
	otherPerson  = 54400
	otherPersons = 54401
)

func only(id uint32, perm uint16) map[uint32]uint16 { return map[uint32]uint16{id: perm} }

// TestWhatAccessListsOpen sets real ones. As root it also tries what the agents' user can do, so that the rule is the
// kernel's.
func TestWhatAccessListsOpen(t *testing.T) {
	agents := files.ModeUser{Known: true, UID: anAgent, Groups: []int{agentsGroup}}
	everybody := access{group: 5, mask: 7, other: 5} // of a folder that others may enter
	for name, test := range map[string]struct {
		user         files.ModeUser
		folder, file access
		made         *access // of what is made in the folder
		secret       bool
		at, says     string // the name of what is wrong, and why; "" for nothing
	}{
		"nobody is named": {agents, everybody, access{mask: 7}, nil, true, "", ""},
		"they may write": {agents, everybody, access{mask: 7, u: only(anAgent, 6)}, nil, false,
			"mark.key", "by user 54321, by its access list; setfacl -x u:54321"},
		"they may read a secret": {agents, everybody, access{mask: 7, u: only(anAgent, 4)}, nil, true,
			"mark.key", "can be read by user 54321"},
		"they may read what is none":     {agents, everybody, access{mask: 7, u: only(anAgent, 4)}, nil, false, "", ""},
		"the mask takes it away":         {agents, everybody, access{mask: 4, u: only(anAgent, 6)}, nil, false, "", ""},
		"the mask takes everything away": {agents, everybody, access{mask: 0, u: only(anAgent, 6)}, nil, true, "", ""},
		"another user may write": {agents, everybody, access{mask: 7, u: only(otherPerson, 6)}, nil, true, "",
			""},
		"their group may write": {agents, everybody, access{mask: 7, g: only(agentsGroup, 2)}, nil, false,
			"mark.key", "by group 54322, by its access list; setfacl -x g:54322"},
		"another group may write": {agents, everybody, access{mask: 7, g: only(otherPersons, 6)}, nil, true, "",
			""},
		"the mask is not the group's": {files.ModeUser{Known: true, UID: anAgent, Groups: []int{os.Getgid()}},
			everybody, access{mask: 6, u: only(otherPerson, 6)}, nil, true, "", ""},
		"the file's group may write": {files.ModeUser{Known: true, UID: anAgent, Groups: []int{os.Getgid()}},
			everybody, access{group: 6, mask: 6}, nil, false, "mark.key", "can be written by group"},
		"they may write the folder": {agents, access{mask: 7, u: only(anAgent, 7)}, access{mask: 7}, nil, false,
			"state", "can be written by user 54321"},
		"they may enter a closed folder": {agents, access{mask: 7, u: only(anAgent, 1)},
			access{mask: 7, u: only(anAgent, 2)}, nil, false, "mark.key", "by user 54321"},
		"their group may enter it": {agents, access{mask: 7, g: only(agentsGroup, 1)}, access{mask: 7, other: 2},
			nil, false, "mark.key", "by everybody"},
		"they may not enter an open one": {agents, access{group: 5, mask: 7, other: 5, u: only(anAgent, 4)},
			access{mask: 7, u: only(anAgent, 6)}, nil, true, "", ""},
		"nobody may enter the folder": {agents, access{mask: 7}, access{mask: 7, u: only(anAgent, 6)}, nil, true, "",
			""},
		// the key is there already
		"what is made there may be written": {agents, everybody, access{mask: 7}, &access{mask: 7, u: only(anAgent, 6)},
			false, "", ""},
		"no user is known, another may write": {files.ModeUser{}, everybody, access{mask: 7, u: only(otherPerson, 6)}, nil,
			false, "mark.key", "by user 54400"},
		"no user is known, a group may read": {files.ModeUser{AnyOwner: true}, everybody,
			access{mask: 7, g: only(otherPersons, 4)}, nil, true, "mark.key", "can be read by group 54401"},
		"no user is known, root is named": {files.ModeUser{}, everybody, access{mask: 7, u: only(0, 6), g: only(0, 6)},
			nil, true, "", ""},
		"no user is known, and we are named": {files.ModeUser{}, everybody,
			access{mask: 7, u: only(uint32(os.Getuid()), 6)}, nil, true, "", ""},
		"no user is known, nobody may come in": {files.ModeUser{}, access{mask: 7}, access{mask: 7, u: only(otherPerson, 6)},
			nil, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder, file := place(t)
			setList(t, folder, "access", test.folder)
			setList(t, file, "access", test.file)
			if test.made != nil {
				setList(t, folder, "default", *test.made)
			}
			got := files.FindModeProblems(test.user, []files.ModeSubject{{What: "the key", Path: file, Secret: test.secret}})
			switch {
			case test.says == "" && len(got) != 0:
				t.Errorf("got %v", got)
			case test.says != "" && (len(got) != 1 || !strings.Contains(got[0].String(), test.says) ||
				filepath.Base(got[0].Path) != test.at):
				t.Errorf("got %v, want %s: %s", got, test.at, test.says)
			}
			if os.Getuid() == 0 && test.user.Known {
				opens := canOpen(t, test.user, file, folder, test.secret)
				if opens != (test.says != "") {
					t.Errorf("the kernel lets them: %v; said is %v", opens, got)
				}
			}
		})
	}
}

// canOpen reports whether a user can write the file or make another one beside it; or, of a secret, read it. It needs
// root.
func canOpen(t *testing.T, user files.ModeUser, path, folder string, secret bool) bool {
	t.Helper()
	opened := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		raw := func(number uintptr, args ...uintptr) {
			if _, _, errno := syscall.RawSyscall(number, args[0], args[1], args[2]); errno != 0 {
				t.Errorf("%d: %v", number, errno)
			}
		}
		const none = ^uintptr(0)
		raw(unix.SYS_SETGROUPS, 0, 0, 0)
		raw(unix.SYS_SETRESGID, none, uintptr(user.Groups[0]), none)
		raw(unix.SYS_SETRESUID, none, uintptr(user.UID), none)
		can := false
		try := func(path string, flags int) {
			if f, err := os.OpenFile(path, flags, 0o600); err == nil {
				can = f.Close() == nil
			}
		}
		try(path, os.O_WRONLY)
		try(filepath.Join(folder, "beside"), os.O_WRONLY|os.O_CREATE)
		if secret {
			try(path, os.O_RDONLY)
		}
		opened <- can
	}()
	return <-opened
}

func TestADefaultAccessListOpensWhatIsMadeLater(t *testing.T) {
	agents := files.ModeUser{Known: true, UID: anAgent, Groups: []int{agentsGroup}}
	folder, _ := place(t)
	look := func() []files.ModeProblem {
		return files.FindModeProblems(agents, []files.ModeSubject{{What: "prompts", Path: folder, Tree: true}})
	}
	setList(t, folder, "default", access{group: 5, mask: 7, other: 5, u: only(anAgent, 5)})
	if got := look(); len(got) != 0 {
		t.Errorf("read only: %v", got)
	}
	inner := filepath.Join(folder, "inner")
	must.Do(t, os.Mkdir(inner, 0o755))
	chmod(t, folder, 0o755) // otherwise no user can reach it
	setList(t, inner, "default", access{group: 5, mask: 7, other: 5, u: only(anAgent, 7)})
	if got := look(); len(got) != 1 || got[0].Path != inner || !strings.Contains(got[0].Why, "setfacl -x d:u:54321") {
		t.Errorf("in the folder: %v", got)
	}
}
