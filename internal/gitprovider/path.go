package gitprovider

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Limits of a path, in bytes. 255 is the longest name that common file systems store; 1024 leaves room for a checkout
// folder below the 4096 of Linux's PATH_MAX.
const (
	MaxPathBytes    = 1024
	MaxSegmentBytes = 255
)

// Path is a canonical repository path: the only form in which providers accept a path. The zero Path is invalid. Only
// ParsePath makes valid ones.
type Path struct{ s string }

// String returns the path, relative to the repository's root, with forward slashes.
func (p Path) String() string { return p.s }

// Ancestors returns the folders above p, outermost first, without the root: for a/b/c.md it is a, a/b.
func (p Path) Ancestors() []string {
	var out []string
	for i, r := range p.s {
		if r == '/' {
			out = append(out, p.s[:i])
		}
	}
	return out
}

// ParsePath accepts s only if it already is canonical (design §3, gate 3): nothing is cleaned, decoded or normalised,
// so that what was approved and what git writes cannot differ. The error says which rule s breaks, in a sentence
// without the path.
func ParsePath(s string) (Path, error) {
	switch {
	case s == "":
		return Path{}, fmt.Errorf("is empty")
	case len(s) > MaxPathBytes:
		return Path{}, fmt.Errorf("is longer than %d bytes", MaxPathBytes)
	case s[0] == '/':
		return Path{}, fmt.Errorf("is absolute; give it relative to the repository's root")
	}
	for _, segment := range strings.Split(s, "/") {
		if err := checkSegment(segment); err != nil {
			return Path{}, err
		}
	}
	return Path{s}, nil
}

func checkSegment(seg string) error {
	switch {
	case seg == "":
		return fmt.Errorf("has an empty segment (a doubled or trailing slash)")
	case seg == "." || seg == "..":
		return fmt.Errorf("has a %q segment", seg)
	case len(seg) > MaxSegmentBytes:
		return fmt.Errorf("has a segment longer than %d bytes", MaxSegmentBytes)
	}
	for _, r := range seg {
		if !isPathRune(r) {
			return fmt.Errorf("has the character %s; only letters A-Z a-z, digits, '.', '_', '-' and '/' are accepted",
				runeName(r))
		}
	}
	switch {
	case seg[0] == '-':
		return fmt.Errorf("has a segment that begins with a hyphen")
	case seg[len(seg)-1] == '.':
		return fmt.Errorf("has a segment that ends with a dot")
	case files.IsGitName(seg):
		return fmt.Errorf("names git's own folder")
	case seg[0] == '.' && seg != ".claude-ops" && !isKindFolder(seg):
		return fmt.Errorf("has a hidden segment (one that begins with a dot)")
	case files.IsDeviceName(seg):
		return fmt.Errorf("has a segment that is a Windows device name")
	}
	return nil
}

func isPathRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// runeName prints a character so that nothing invisible or harmful reaches a message.
func runeName(r rune) string {
	if r > ' ' && r < 0x7f {
		return fmt.Sprintf("%q", r)
	}
	return fmt.Sprintf("U+%04X", r)
}

// printable renders an untrusted string for a message: quoted as ASCII, cut at 120 bytes.
func printable(s string) string {
	const limit = 120
	if len(s) > limit {
		return fmt.Sprintf("%+q...", s[:limit])
	}
	return fmt.Sprintf("%+q", s)
}
