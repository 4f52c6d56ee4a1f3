package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/claudeops/claudeops/internal/base/textscan"
)

// Errors of ParseRel and CheckName: what is wrong with a path, to be said after it. Test for them with errors.Is.
var (
	ErrNotPath     = errors.New("is not a path")
	ErrNotRelative = errors.New("is not relative")
	ErrRoundabout  = errors.New("leads out of its folder, or is written in a roundabout way")
	ErrPathTooLong = errors.New("is too long")
	errGitName     = errors.New("is git's own folder, or is taken for it on some file systems")
	errHiddenName  = errors.New("has characters that cannot be seen, or that reorder what is seen")
)

// Rel is a canonical relative path, with slashes. It does not lead out of a folder, nor into anything that git or a
// file system treats as git's own. The zero Rel is invalid. Only ParseRel makes valid ones.
type Rel struct{ path string }

// String returns the path.
func (r Rel) String() string { return r.path }

// ParseRel accepts a path of at most limit bytes that is canonical already; nothing is cleaned. The error is one of
// those above.
func ParseRel(name string, limit int) (Rel, error) {
	switch {
	case name == "" || !utf8.ValidString(name) || strings.ContainsAny(name, "\\\x00"):
		return Rel{}, ErrNotPath
	case path.IsAbs(name) || len(name) > 1 && name[1] == ':':
		return Rel{}, ErrNotRelative
	case path.Clean(name) != name || slices.Contains(strings.Split(name, "/"), ".."):
		return Rel{}, ErrRoundabout
	case len(name) > limit:
		return Rel{}, ErrPathTooLong
	}
	for component := range strings.SplitSeq(name, "/") {
		if err := CheckName(component); err != nil {
			return Rel{}, err
		}
	}
	return Rel{name}, nil
}

// CheckName returns errGitName or errHiddenName for a component of a path that no Rel has.
func CheckName(component string) error {
	control := func(r rune) bool { return r < ' ' } // a tab and a newline are not hidden characters of a text
	switch {
	case isPlainName(component): // most are
		return nil
	case IsGitName(component):
		return errGitName
	case strings.ContainsFunc(component, control) || len(textscan.Hidden(component)) > 0:
		return errHiddenName
	}
	return nil
}

// isPlainName reports whether a component has visible characters of ASCII alone, and nothing that a name for .git
// begins with or has in it.
func isPlainName(component string) bool {
	for i := range len(component) {
		if c := component[i]; c <= ' ' || c >= 0x7f || c == '~' {
			return false
		}
	}
	return component != "" && component[0] != '.'
}

// IsGitName reports whether git or a file system takes a component of a path for .git. HFS+ passes over some
// characters, NTFS over dots and spaces at the end and over the name of a stream, and a volume with short names has
// GIT~1 beside .git.
func IsGitName(component string) bool {
	name, _, _ := strings.Cut(FoldName(component), ":")
	name = strings.TrimRight(name, ". ")
	if name == ".git" {
		return true
	}
	stem, number, isShort := strings.Cut(name, "~")
	if !isShort || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	const hashed = len("gi7d29") // after four names that are alike, NTFS makes others of two letters and a hash
	return stem == "git" || len(stem) == hashed && strings.HasPrefix(stem, "gi") &&
		strings.Trim(stem[2:], "0123456789abcdef") == ""
}

// FoldName returns a name as a file system compares it that passes over case, over the form in which accents are
// written, and over characters that are not seen.
func FoldName(name string) string {
	fold := func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return unicode.ToLower(least) // of the letters of ASCII the capital is the least
	}
	return norm.NFD.String(strings.Map(fold, norm.NFD.String(name)))
}

// IsDeviceName reports whether Windows takes a component of a path for a device, whatever follows its first dot
// (learn.microsoft.com, "Naming Files, Paths, and Namespaces").
func IsDeviceName(component string) bool {
	name, _, _ := strings.Cut(strings.ToLower(component), ".")
	name = strings.TrimSpace(name)
	switch name {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	number, ok := strings.CutPrefix(name, "com")
	if !ok {
		number, ok = strings.CutPrefix(name, "lpt")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.Contains("123456789¹²³", number)
}

// Inside judges where links end for what is below a root: it returns a name without links of what a name leads to.
// again is false if that is outside of the root, or if failure is not about a link that leads out. os.Root takes each
// absolute link for such a one, also if it ends inside; that the name is used below the root again keeps everything
// there.
func Inside(root *os.Root, name string, failure error) (inner string, again bool) {
	if failure == nil || !Escapes(failure) || !filepath.IsLocal(name) {
		return "", false
	}
	top, err := RealPath(root.Name())
	if err != nil {
		return "", false
	}
	inner, err = filepath.Rel(top, Resolve(filepath.Join(top, filepath.FromSlash(name))))
	return filepath.ToSlash(inner), err == nil && filepath.IsLocal(inner) && filepath.ToSlash(inner) != path.Clean(name)
}

// Escapes reports whether an error of an os.Root says that a link leads out of it.
func Escapes(err error) bool { return strings.Contains(err.Error(), "escapes") }

// Dir reads below one folder and can write nothing. A symbolic link is followed as far as it ends in the folder, also
// an absolute one; one that leaves it is an error. Names have slashes and are relative to the folder. It is safe for
// concurrent use.
type Dir struct{ root *os.Root }

// OpenDir opens a folder that the operator named: symbolic links on the way to it are followed wherever they lead.
// Anything that is not a folder is ErrNotFolder in an *fs.PathError, at once. The caller closes the Dir.
func OpenDir(path string) (*Dir, error) {
	root, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

func openRoot(path string) (*os.Root, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotFolder}
	}
	root, err := os.OpenRoot(asFolder(path)) // another file may lie at the path by now
	var of *fs.PathError
	if errors.As(err, &of) {
		of.Path = path
	}
	return root, err
}

// asFolder returns a name that the system takes for that of a folder alone: os.OpenRoot waits for a named pipe else.
func asFolder(name string) string {
	if name == "" || os.IsPathSeparator(name[len(name)-1]) {
		return name
	}
	return name + string(os.PathSeparator)
}

// Close closes the folder. What was opened below it stays open.
func (d *Dir) Close() error { return d.root.Close() }

// Folder opens a folder in this one. Links in it are followed as far as they stay in the inner one. Anything that is
// not a folder is an error at once. The caller closes it.
func (d *Dir) Folder(name string) (*Dir, error) {
	root, err := d.root.OpenRoot(asFolder(name))
	if inner, again := Inside(d.root, name, err); again {
		root, err = d.root.OpenRoot(asFolder(inner))
	}
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Stat says what lies at the name, or where a link there leads to. It opens nothing.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	info, err := d.root.Stat(name)
	if inner, again := Inside(d.root, name, err); again {
		return d.root.Stat(inner)
	}
	return info, err
}

// Lstat is Stat without following a final link.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// Has reports whether there is anything at a name; a link there is not followed.
func (d *Dir) Has(name string) bool {
	_, err := d.root.Lstat(name)
	return err == nil
}

// Name returns the path that the folder was opened by.
func (d *Dir) Name() string { return d.root.Name() }

// FS returns the folder for fs.WalkDir, which follows no links. Files are to be read by Read, which waits for none.
func (d *Dir) FS() fs.FS { return d.root.FS() }

// Itself opens the folder as a file, to be locked. The caller closes it.
func (d *Dir) Itself() (*os.File, error) { return d.root.Open(".") }

// Open opens a regular file for reading. Anything else is ErrNotRegular, in an *fs.PathError; opening it has no effect
// on it. The information is of the very file that was opened. The caller closes the file.
func (d *Dir) Open(name string) (*os.File, fs.FileInfo, error) {
	f, info, err := openRegular(name, d.root.Stat, d.root.OpenFile)
	if inner, again := Inside(d.root, name, err); again {
		return openRegular(inner, d.root.Stat, d.root.OpenFile)
	}
	return f, info, err
}

// Read reads a regular file of at most limit bytes. The errors are those of Open, and ErrTooLarge in an *fs.PathError.
// The information is of the very file that was read.
func (d *Dir) Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := d.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return readAndClose(f, info, name, limit)
}

// Entries lists a folder by name, at most limit entries of it: complete is false if there are more. "." is this one.
// Anything that is not a folder is ErrNotFolder, in an *fs.PathError, at once.
func (d *Dir) Entries(name string, limit int) (entries []fs.DirEntry, complete bool, err error) {
	info, err := d.root.Stat(name)
	if inner, again := Inside(d.root, name, err); again {
		name = inner
		info, err = d.root.Stat(name)
	}
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return nil, false, &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	dir, err := d.root.OpenFile(name, os.O_RDONLY|withoutWaiting, 0) // another file may lie at the name by now
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dir.Close() }()
	entries, err = dir.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	complete = len(entries) <= limit
	entries = entries[:min(len(entries), limit)]
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, complete, nil
}

// Read is Dir.Read below a root, for system/fileset, which stages files of its own below roots; everybody else has a
// Dir or a Writing.
func Read(root *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := openRegular(name, root.Stat, root.OpenFile)
	if err != nil {
		return nil, nil, err
	}
	return readAndClose(f, info, name, limit)
}
