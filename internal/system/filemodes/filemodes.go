package filemodes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// User is the user who must not be able to change a file. The zero value, with Known false, stands for every user but
// root and that of this process.
type User struct {
	Known  bool
	UID    int
	Groups []int // all of them
	// AnyOwner ignores who owns a file where no user is known: only a mode's permissions for others count.
	AnyOwner bool
}

// Subject is a file or folder that is looked at.
type Subject struct {
	What   string // for people, such as "the key of the marks"
	Path   string
	Secret bool // it must not be readable either
	Tree   bool // everything in the folder is looked at, too: at most 2,000 files
}

// Problem says why a subject can be changed.
type Problem struct {
	What string
	// the file or folder whose owner, mode or access list is wrong: the subject, something in it, or a folder above it
	Path string
	Why  string // the present state, and the command that corrects it
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s %s", p.What, p.Path, p.Why) }

// maxTree bounds how many files of a folder are looked at.
const maxTree = 2000

// Look looks at the subjects, and lists what is wrong: at most one problem for each subject. What does not exist is
// passed over, but the folders above it are looked at. Symbolic links are followed, and the folders that hold them are
// looked at as well.
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
		f := file{user: user, path: step, info: info, secret: secret && last, ours: last}
		if f.read() {
			if why := f.wrong(); why != "" {
				return Problem{Path: step, Why: why}, true
			}
		}
		if !last && !f.enters() {
			return Problem{}, false // whatever the modes below say, no other user reaches them
		}
	}
	return Problem{}, false
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
		f := file{user: user, path: path, info: info, ours: true}
		if !f.read() {
			return nil
		}
		if why := f.wrong(); why != "" {
			out, bad = Problem{Path: path, Why: why}, true
		}
		return nil
	})
	return out, bad
}
