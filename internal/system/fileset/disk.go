package fileset

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
	// opened keeps bases open for one call that looks at many files; nil opens one anew each time.
	opened openBases
	// folders remembers, by the path of a folder, its path below its base without links.
	folders map[string]string
}

// openBases are opened bases by their paths. They are not safe for concurrent use.
type openBases map[string]*baseRoot

// baseRoot is an opened base. Close does nothing while openBases have it.
type baseRoot struct {
	*os.Root
	info fs.FileInfo // nil for one that nobody keeps
}

// Close closes a base that is not kept open.
func (r *baseRoot) Close() error {
	if r.info != nil {
		return nil
	}
	return r.Root.Close()
}

// get returns the opened base at a path, unless another folder is there now.
func (o openBases) get(base string) *baseRoot {
	kept := o[base]
	if kept == nil {
		return nil
	}
	if info, err := os.Stat(base); err == nil && os.SameFile(info, kept.info) {
		return kept
	}
	_ = kept.Root.Close()
	delete(o, base)
	return nil
}

// add keeps a base open.
func (o openBases) add(base string, root *baseRoot) {
	if info, err := root.Stat("."); o != nil && err == nil {
		root.info = info
		o[base] = root
	}
}

func (o openBases) close() {
	for _, kept := range o {
		_ = kept.Root.Close()
	}
	clear(o)
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
	return disk{bases: slices.Compact(bases), folders: map[string]string{}}
}

// inside returns a path below a base, of which only the last part may be a link: a link that ends in the base is
// followed, an absolute one too. What leads out stays as it is, and is refused by the root.
func (d disk) inside(base, rel string) string {
	dir, name := path.Split(rel)
	return path.Join(d.insideFolder(base, path.Clean(dir)), name)
}

// insideFolder is inside for a folder. Of one that is missing, the deepest that is there counts: it is looked at once
// for all that is to come below it.
func (d disk) insideFolder(base, dir string) string {
	if dir == "." || dir == "/" {
		return dir
	}
	at := filepath.Join(base, filepath.FromSlash(dir))
	if known, has := d.folders[at]; has {
		return known
	}
	if !Exists(at) {
		return path.Join(d.insideFolder(base, path.Dir(dir)), path.Base(dir))
	}
	known := dir
	if top, err := RealPath(base); err == nil {
		inner, err := filepath.Rel(top, files.Resolve(at))
		if err == nil && filepath.IsLocal(inner) {
			known = filepath.ToSlash(inner)
		}
	}
	if d.folders != nil {
		d.folders[at] = known
	}
	return known
}

// withinFolder is within for a folder, which may be reached by links that end in the base.
func (d disk) withinFolder(dir string) (root *baseRoot, rel string, err error) {
	root, rel, err = d.openBase(filepath.Join(dir, temporary))
	return root, path.Dir(rel), err
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

// openBase opens the base of a path. rel is the path below it, with slashes. fs.ErrNotExist if the base is not there.
func (d disk) openBase(name string) (root *baseRoot, rel string, err error) {
	base, rel, ok := d.baseOf(name)
	if !ok {
		return nil, "", fmt.Errorf("%s lies in none of the folders that may be written", name)
	}
	if root := d.opened.get(base); root != nil {
		return root, d.inside(base, rel), nil
	}
	if err := d.moved(base); err != nil {
		return nil, "", err
	}
	opened, err := openRoot(base)
	if err != nil {
		return nil, "", err
	}
	root = &baseRoot{Root: opened}
	d.opened.add(base, root)
	return root, d.inside(base, rel), nil
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

// withBase runs f with the base of a path, and gives its error its code.
func (d disk) withBase(name string, f func(root *os.Root, rel string) error) error {
	root, rel, err := d.openBase(name)
	if err != nil {
		return IOError(name, err)
	}
	defer func() { _ = root.Close() }()
	if err := f(root.Root, rel); err != nil {
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

// lstat sees what is at a path without following a link at its end.
func (d disk) lstat(name string) (found, error) {
	at, err := d.read(name)
	at.content = nil
	return at, err
}

// read is look with the file's content.
func (d disk) read(name string) (at found, err error) {
	root, rel, err := d.openBase(name)
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
	content, info, err := files.Read(root.Root, rel, MaxFileBytes)
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
	err = d.withBase(name, func(root *os.Root, rel string) error {
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

// noFolder returns the conflict of a new file above which something else than a folder stands that does not go.
func (d disk) noFolder(name string, goes func(name string) bool) error {
	_, _, where, what, err := d.ground(name)
	if err != nil && errors.Is(err, fs.ErrNotExist) {
		return nil // the base is made
	}
	if err != nil || what == "" || goes(where) {
		return err
	}
	return NewError(DesiredStateConflict, "path_in_the_way", []string{"remove_path", "retry_command"},
		"%s is %s; move it away", where, what).With("path", where)
}

// onlyHas reports whether each file below a folder is one that goes, and deployments have made the folder and those in
// it.
func (d disk) onlyHas(name string, goes, made func(name string) bool) (only bool, err error) {
	only = true
	err = d.withBase(name, func(root *os.Root, rel string) error {
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
	escapes := files.Escapes(err)
	if why := outward(name); escapes && why != "" {
		return NewError(PermissionDenied, "io_permission_denied", []string{"fix_permissions", "retry_command"}, "%s",
			why).With("path", name).Because(err)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || escapes {
		return NewError(PermissionDenied, "io_permission_denied", []string{"fix_permissions", "retry_command"}, "%s: %s",
			name, pathlessError(err)).With("path", name).Because(err)
	}
	return NewError(Unexpected, "io_error", []string{"retry_command"}, "%s: %s", name, pathlessError(err)).With("path",
		name).Because(err)
}

// temporary is the name prefix of staged files; the next call removes those that a killed process left.
const temporary = ".agentpack-new-"

// stage writes a new file where it waits, on disk once together was flushed; nil: at once.
func (d disk) stage(name string, content []byte, mode fs.FileMode, together *gathering) error {
	return d.withBase(name, func(root *os.Root, rel string) error {
		f, err := createOver(root, rel)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		err = errors.Join(err, f.Chmod(mode), together.sync(f), f.Close())
		if err != nil {
			_ = root.Remove(rel)
		}
		return err
	})
}

// createOver makes a file, in the place of one that a killed process may have left.
func createOver(root *os.Root, rel string) (*os.File, error) {
	const flags, private = os.O_WRONLY | os.O_CREATE | os.O_EXCL, 0o600
	f, err := root.OpenFile(rel, flags, private)
	if errors.Is(err, fs.ErrExist) {
		_ = root.Remove(rel)
		f, err = root.OpenFile(rel, flags, private)
	}
	return f, err
}

// moveIntoPlace moves a staged file to its place, atomically. It makes missing folders.
func (d disk) moveIntoPlace(staged, name string) error {
	root, from, err := d.openBase(staged)
	if err != nil {
		return IOError(staged, err)
	}
	defer func() { _ = root.Close() }()
	to, err := filepath.Rel(filepath.Dir(staged), name)
	if err != nil {
		return IOError(name, err)
	}
	rel := path.Join(path.Dir(from), filepath.ToSlash(to))
	err = root.Rename(from, rel)
	if errors.Is(err, fs.ErrNotExist) {
		if err = root.MkdirAll(path.Dir(rel), 0o755); err == nil {
			err = root.Rename(from, rel)
		}
	}
	if err != nil {
		return IOError(name, err)
	}
	return nil
}

// write stages a file beside its place and places it. Folders are made.
func (d disk) write(name string, content []byte, mode fs.FileMode, suffix string) error {
	err := d.withBase(name, func(root *os.Root, rel string) error { return root.MkdirAll(path.Dir(rel), 0o755) })
	if err != nil {
		return err
	}
	staged := filepath.Join(filepath.Dir(name), temporary+suffix)
	if err := d.stage(staged, content, mode, nil); err != nil {
		return err
	}
	if err := d.moveIntoPlace(staged, name); err != nil {
		_ = d.remove(staged)
		return err
	}
	return nil
}

// WriteBelow writes a file below a folder, out of which no link is followed. name is its absolute path; the folders
// above it are made, and base.
func WriteBelow(base, name string, content []byte, executable bool, suffix string) error {
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // as other programs make it
		return IOError(base, err)
	}
	return newDisk(base).write(name, content, fs.FileMode(modeOf(executable)), suffix)
}

// remove removes a file; one that is not there is fine.
func (d disk) remove(name string) error {
	root, rel, err := d.openBase(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return IOError(name, err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Remove(rel); err != nil && !absent(err) {
		return IOError(name, err)
	}
	return nil
}

// removeEmpty removes a folder that stands where a file has to be, with the empty folders in it.
func (d disk) removeEmpty(name string) error {
	return d.withBase(name, func(root *os.Root, rel string) error {
		var folders []string
		err := fs.WalkDir(root.FS(), rel, func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				err = fs.ErrExist
			}
			folders = append(folders, p)
			return err
		})
		for _, folder := range slices.Backward(folders) {
			if err == nil {
				err = root.Remove(folder)
			}
		}
		return err
	})
}

// writable tries whether files can be made in a folder.
func (d disk) writable(dir, suffix string) error {
	probe := filepath.Join(dir, temporary+suffix)
	err := d.withBase(probe, func(root *os.Root, rel string) error {
		f, err := createOver(root, rel)
		if err == nil {
			err = f.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.remove(probe)
}

// syncFile puts a file that was written before on disk, with together.
func (d disk) syncFile(name string, together *gathering) error {
	return d.withBase(name, func(root *os.Root, rel string) error {
		f, err := root.Open(rel)
		if err != nil {
			return err
		}
		return errors.Join(together.sync(f), f.Close())
	})
}

// sync puts the entries of the folders of files on disk.
func (d disk) sync(names []string) {
	seen, together := map[string]bool{}, &gathering{}
	for _, name := range names {
		dir := filepath.Dir(name)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if root, rel, err := d.withinFolder(dir); err == nil {
			syncFolder(root.Root, rel, together)
			_ = root.Close()
		}
	}
	_ = together.flush()
}

// syncFolder puts a folder's entries on disk. Where folders cannot be synced, a file is still whole or as before.
func syncFolder(root *os.Root, name string, together *gathering) {
	if dir, err := root.Open(name); err == nil {
		_ = together.sync(dir)
		_ = dir.Close()
	}
}

// outwardLink returns the link by which a path leads out of the folder that holds the link, the deepest of several, and
// where it leads; "" if there is none.
func outwardLink(name string) (link, target string) {
	for name = filepath.Clean(name); filepath.Dir(name) != name; name = filepath.Dir(name) {
		within := files.Resolve(filepath.Dir(name))
		if at := files.Resolve(name); at != filepath.Join(within, filepath.Base(name)) && !Below(within, at) {
			return name, at
		}
	}
	return "", ""
}

// outward says what to do about a path that a link leads out of its folder; "" if none does.
func outward(name string) string {
	link, target := outwardLink(name)
	switch {
	case link == "":
		return ""
	case filepath.Base(link) == ".codex":
		return fmt.Sprintf("%s is a link to %s, and no link is followed out of its folder; set CODEX_HOME=%s", link, target,
			target)
	}
	return fmt.Sprintf(
		"%s is a link to %s, and no link is followed out of its folder; put a folder in its place, or mount that one there",
		link, target)
}
