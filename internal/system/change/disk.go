package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/system/files"
)

// disk reads and writes the files of targets. Every file lies below one of its bases (the user's home, the project,
// Codex's home), and no symbolic link is followed out of it.
type disk struct {
	bases []string // absolute
	// real are the bases' paths without links, as they were when what is being done began; a base that leads elsewhere by
	// now is not used. A base that it does not have is not looked at.
	real map[string]string
}

// newDisk knows the bases; the deepest that holds a path is the one that it is reached by.
func newDisk(bases ...string) disk {
	bases = slices.DeleteFunc(slices.Clone(bases), func(b string) bool { return b == "" })
	slices.SortFunc(bases, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return disk{bases: slices.Compact(bases)}
}

// baseOf returns the base of a path, and the path below it, with slashes.
func (d disk) baseOf(name string) (base, rel string, ok bool) {
	for _, base := range d.bases {
		if Below(base, name) {
			rel, err := filepath.Rel(base, name)
			return base, filepath.ToSlash(rel), err == nil
		}
	}
	return "", "", false
}

// within opens the base of a path. rel is the path below it, with slashes. fs.ErrNotExist if the base is not there.
func (d disk) within(name string) (root *os.Root, rel string, err error) {
	base, rel, ok := d.baseOf(name)
	if !ok {
		return nil, "", fmt.Errorf("%s lies in none of the folders that may be written", name)
	}
	if err := d.moved(base); err != nil {
		return nil, "", err
	}
	root, err = openRoot(base)
	return root, rel, err
}

// openRoot opens a folder; something else at its path is an error, and is not waited for.
func openRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// moved returns an error if a base leads elsewhere than when what is being done began.
func (d disk) moved(base string) error {
	want, known := d.real[base]
	if !known {
		return nil
	}
	now, err := RealPath(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is there
	}
	if err == nil && now != want {
		err = NewError(PermissionDenied, "path_in_the_way", []string{"remove_path", "retry_command"},
			"%s leads to another folder than before; nothing is written there", base).With("path", base)
	}
	return err
}

// RealPath returns a path without links.
func RealPath(name string) (string, error) { return filepath.EvalSymlinks(name) }

// realPaths returns the paths of folders without links; those that are not there are left out.
func realPaths(folders []string) map[string]string {
	out := map[string]string{}
	for _, folder := range folders {
		if real, err := RealPath(folder); err == nil {
			out[folder] = real
		}
	}
	return out
}

// Exists reports whether there is anything at a path; a link at its end is not followed.
func Exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// in runs f with the base of a path, and gives its error its code.
func (d disk) in(name string, f func(root *os.Root, rel string) error) error {
	root, rel, err := d.within(name)
	if err != nil {
		return IOError(name, err)
	}
	defer func() { _ = root.Close() }()
	if err := f(root, rel); err != nil {
		return IOError(name, err)
	}
	return nil
}

// aFolder describes a folder at a path that should be a file.
const aFolder = "a folder"

// found describes what is at a path.
type found struct {
	exists  bool
	content []byte // only if it was asked for
	hash    string // of a file; "" otherwise
	mode    fs.FileMode
	what    string // why it is not a plain file; "" if it is one, or nothing is there
}

// look sees what is at a path without following a link at its end.
func (d disk) look(name string) (found, error) {
	at, err := d.read(name)
	at.content = nil
	return at, err
}

// read is look with the file's content.
func (d disk) read(name string) (at found, err error) {
	root, rel, err := d.within(name)
	if errors.Is(err, fs.ErrNotExist) {
		return found{}, nil
	}
	if err != nil {
		return found{}, IOError(name, err)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(rel)
	switch {
	case absent(err):
		return found{}, nil
	case err != nil:
		return found{}, IOError(name, err)
	}
	if what := notPlain(info); what != "" {
		return found{exists: true, what: what}, nil
	}
	content, info, err := files.Read(root, rel, MaxFileBytes)
	if err != nil {
		return found{}, IOError(name, err)
	}
	return found{exists: true, content: content, hash: Hash(content), mode: info.Mode().Perm()}, nil
}

// absent reports whether an error says that nothing is at a path, or that it leads through a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func notPlain(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "a symbolic link"
	case info.IsDir():
		return aFolder
	case !info.Mode().IsRegular():
		return "no regular file"
	case info.Size() > MaxFileBytes:
		return fmt.Sprintf("a file of more than %d bytes", MaxFileBytes)
	}
	return ""
}

// ground returns the deepest folder above a path that is there. missing are the folders between, the outer ones first.
// what says what stands where a folder has to be, and where; "" if nothing does.
func (d disk) ground(name string) (dir string, missing []string, where, what string, err error) {
	err = d.in(name, func(root *os.Root, rel string) error {
		dir = filepath.Dir(name)
		for p := path.Dir(rel); ; p, dir = path.Dir(p), filepath.Dir(dir) {
			info, err := root.Stat(p)
			switch {
			case err == nil && info.IsDir():
				slices.Reverse(missing)
				return nil
			case err == nil:
				where, what = dir, "a file where a folder has to be"
				return nil
			case !absent(err):
				return err
			}
			if at, err := root.Lstat(p); err == nil && at.Mode()&fs.ModeSymlink != 0 {
				where, what = dir, "a symbolic link that leads nowhere"
				return nil
			}
			missing = append(missing, dir)
			if p == "." {
				return fs.ErrNotExist
			}
		}
	})
	return dir, missing, where, what, err
}

// onlyHas reports whether each file below a folder is one that goes, and deployments have made the folder and those in
// it.
func (d disk) onlyHas(name string, goes, made func(name string) bool) (only bool, err error) {
	only = true
	err = d.in(name, func(root *os.Root, rel string) error {
		return fs.WalkDir(root.FS(), rel, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			ours := goes
			if e.IsDir() {
				ours = made
			}
			inside, err := filepath.Rel(filepath.FromSlash(rel), filepath.FromSlash(p))
			if only = err == nil && ours(filepath.Join(name, inside)); !only {
				return fs.SkipAll
			}
			return nil
		})
	})
	return only, err
}

// IOError gives an error of the file system its code.
func IOError(name string, err error) error {
	var coded *Error
	if errors.As(err, &coded) {
		return err
	}
	escapes := strings.Contains(err.Error(), "escapes")
	if why := outward(name); escapes && why != "" {
		return NewError(PermissionDenied, "io_permission_denied", []string{"fix_permissions", "retry_command"}, "%s",
			why).With("path", name).Because(err)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || escapes {
		return NewError(PermissionDenied, "io_permission_denied", []string{"fix_permissions", "retry_command"}, "%s: %s",
			name, reason(err)).With("path", name).Because(err)
	}
	return NewError(Unexpected, "io_error", []string{"retry_command"}, "%s: %s", name, reason(err)).With("path",
		name).Because(err)
}
