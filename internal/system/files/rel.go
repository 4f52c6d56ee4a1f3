package files

import (
	"errors"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/claudeops/claudeops/internal/base/content"
)

// Errors of ParseRel and CheckName: what is wrong with a path, to be said after it. Test for them with errors.Is.
var (
	ErrNotPath     = errors.New("is no path")
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
	case strings.ContainsFunc(component, control) || len(content.Hidden(component)) > 0:
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
