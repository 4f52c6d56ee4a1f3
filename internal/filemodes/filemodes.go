package filemodes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// User is who must not be able to change a file. The zero value, with Known false, stands for every user but root and that of this process.
type User struct {
	Known  bool
	UID    int
	Groups []int // all of them
	// AnyOwner passes over files that belong to another user, where nobody is known: only what a mode lets others do counts.
	AnyOwner bool
}

// Subject is a file or folder that is looked at.
type Subject struct {
	What   string // for people, such as "the key of the marks"
	Path   string
	Secret bool // it must not be readable either
	Tree   bool // everything in the folder is looked at, too: at most 2,000 files
}

// Problem is what makes a subject changeable.
type Problem struct {
	What string
	Path string // the file or folder whose owner or mode is wrong: the subject, something in it, or a folder above it
	Why  string // what it is, and the command that mends it
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s %s", p.What, p.Path, p.Why) }

// maxTree bounds how many files of a folder are looked at.
const maxTree = 2000

// Look looks at the subjects, and lists what is wrong: at most one problem for each subject. What does not exist is passed over, but the folders above it
// are looked at. Symbolic links are followed, and the folders that hold them are looked at as well.
func Look(user User, subjects []Subject) (out []Problem) {
	for _, s := range subjects {
		if s.Path == "" {
			continue
		}
		if p, bad := look(user, s); bad {
			p.What = s.What
			out = append(out, p)
		}
	}
	return out
}

func look(user User, s Subject) (Problem, bool) {
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return Problem{}, false
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
		return Problem{}, false
	}
	return lookInto(user, resolved)
}

// lookUp looks at a path and every folder above it, from the root on.
func lookUp(user User, path string, secret bool) (Problem, bool) {
	steps := []string{path}
	for at := path; filepath.Dir(at) != at; {
		at = filepath.Dir(at)
		steps = append(steps, at)
	}
	slices.Reverse(steps)
	for i, step := range steps {
		info, err := os.Lstat(step)
		if err != nil {
			return Problem{}, false // what is below does not exist, or cannot be seen
		}
		last := i == len(steps)-1
		if why := wrong(user, step, info, secret && last); why != "" {
			return Problem{Path: step, Why: why}, true
		}
		if !last && !enters(user, info) {
			return Problem{}, false // whatever the modes below say, nobody comes so far
		}
	}
	return Problem{}, false
}

// enters reports whether the user may reach what is in a folder.
func enters(user User, info fs.FileInfo) bool {
	owner, group, known := ownerOf(info)
	if !known || !info.IsDir() {
		return true // unknown; or a link, and where that leads to is looked at by itself
	}
	const ownerEnter, groupEnter, otherEnter = 0o100, 0o010, 0o001
	mode := info.Mode().Perm()
	switch {
	case user.Known && owner == user.UID:
		return mode&ownerEnter != 0
	case user.Known && slices.Contains(user.Groups, group):
		return mode&groupEnter != 0
	case !user.Known && mode&groupEnter != 0:
		return true
	}
	return mode&otherEnter != 0
}

// lookInto looks at what is in a folder.
func lookInto(user User, folder string) (out Problem, bad bool) {
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
		if why := wrong(user, path, info, false); why != "" {
			out, bad = Problem{Path: path, Why: why}, true
		}
		return nil
	})
	return out, bad
}

// wrong says why the user could change (or, of a secret, read) something; "" if they could not.
func wrong(user User, path string, info fs.FileInfo, secret bool) string {
	owner, group, known := ownerOf(info)
	if !known || info.Mode()&fs.ModeSymlink != 0 {
		return "" // where a link leads to is looked at by itself
	}
	mode := info.Mode().Perm()
	own, member := user.Known && owner == user.UID, user.Known && slices.Contains(user.Groups, group)
	if !user.Known { // any other user, but root, who can do everything
		own = owner != 0 && owner != os.Getuid() && !user.AnyOwner
		member = group != 0 && group != os.Getgid() // a user's own group, as a umask of 002 expects
	}
	quoted := "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0
	const otherWrite, groupWrite, otherRead, groupRead = 0o002, 0o020, 0o004, 0o040
	switch {
	case own:
		return fmt.Sprintf("belongs to user %d (mode %04o); chown %d %s", owner, mode, os.Getuid(), quoted)
	case mode&otherWrite != 0 && !sticky:
		return fmt.Sprintf("can be written by everybody (mode %04o, owner %d); chmod o-w %s", mode, owner, quoted)
	case mode&groupWrite != 0 && member && !sticky:
		return fmt.Sprintf("can be written by group %d (mode %04o, owner %d); chmod g-w %s", group, mode, owner, quoted)
	case secret && mode&otherRead != 0:
		return fmt.Sprintf("can be read by everybody (mode %04o, owner %d); %s", mode, owner, ours(owner, quoted))
	case secret && mode&groupRead != 0 && member:
		return fmt.Sprintf("can be read by group %d (mode %04o, owner %d); %s", group, mode, owner, ours(owner, quoted))
	}
	return ""
}

// ours is the command that lets nobody but this process's user read a file.
func ours(owner int, quoted string) string {
	if us := os.Getuid(); owner != us {
		return fmt.Sprintf("chown %d %s && chmod 600 %s", us, quoted, quoted)
	}
	return "chmod 600 " + quoted
}
