package gitprovider

import (
	"crypto/sha1" // #nosec G505: git's object ids, not a security measure
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Action names the change to a file: create, update or delete.
type Action string

// The actions.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"
)

// Valid reports whether a is one of the actions.
func (a Action) Valid() bool { return a == ActionCreate || a == ActionUpdate || a == ActionDelete }

// FileChange is one file of a request, as it was asked for: nothing about it has been checked.
type FileChange struct {
	Path    string
	Action  Action
	Content string // "" for delete
	// git blob id of the file on the base branch that the change was made for; "" if there is none, or it is not known
	BaseSHA string
}

// Fingerprint identifies the text that a change brings, letter case and space aside: who puts a change into another
// file does not make it another change. 16 hex digits; "" for a delete, and for a text of less than minFingerprinted
// bytes.
func (f FileChange) Fingerprint() string {
	text := strings.Join(strings.Fields(strings.ToLower(f.Content)), " ")
	if f.Action == ActionDelete || len(text) < minFingerprinted {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// minFingerprinted is the minimum length of a text that identifies a change: files that hold nothing but a title are
// often the same by chance.
const minFingerprinted = 16

// ChangeType names the kind of procedure that a change is about; it is the folder in the branch's name.
type ChangeType string

// The change types. The default is TypeFix.
const (
	TypeCheck    ChangeType = "check"
	TypePlaybook ChangeType = "playbook"
	TypeSkill    ChangeType = "skill"
	TypeManifest ChangeType = "manifest"
	TypeFix      ChangeType = "fix"
)

// ChangeTypes returns the change types in the order in which they are documented.
func ChangeTypes() []ChangeType {
	return []ChangeType{TypeCheck, TypePlaybook, TypeSkill, TypeManifest, TypeFix}
}

// Valid reports whether t is one of the change types.
func (t ChangeType) Valid() bool { return slices.Contains(ChangeTypes(), t) }

// Change is one file of a ChangeSet.
type Change struct {
	Path    Path
	Action  Action
	Content string
}

// ChangeSet is a set of changes that tier and scope have approved. NewChangeSet is its only constructor, so a
// provider's write method, which takes one, cannot be reached by an unchecked change. The zero ChangeSet is empty, and
// providers refuse to commit it.
type ChangeSet struct{ changes []Change }

// Changes returns the changes, sorted by path. The slice is the caller's.
func (s ChangeSet) Changes() []Change { return slices.Clone(s.changes) }

// Len returns the number of files.
func (s ChangeSet) Len() int { return len(s.changes) }

// Paths returns the paths, sorted.
func (s ChangeSet) Paths() []Path {
	out := make([]Path, len(s.changes))
	for i, c := range s.changes {
		out[i] = c.Path
	}
	return out
}

// newChangeSet sorts the changes: the canonical order that digests and commits rely on.
func newChangeSet(changes []Change) ChangeSet {
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path.s, b.Path.s) })
	return ChangeSet{changes}
}

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

// EntryKind is the kind of a git tree entry.
type EntryKind string

// The kinds of tree entries.
const (
	KindFile      EntryKind = "file"      // modes 100644 and 100755
	KindSymlink   EntryKind = "symlink"   // mode 120000
	KindDir       EntryKind = "dir"       // mode 040000
	KindSubmodule EntryKind = "submodule" // mode 160000
)

// Entry is one entry of a git tree.
type Entry struct {
	Kind       EntryKind
	Executable bool
	ID         string // object id
}

// Tree holds tree entries by their full path from the repository's root.
type Tree map[string]Entry

// foldedTwin returns the path of an entry whose full path equals p when letter case is ignored but is spelled
// otherwise, for p itself or one of its ancestor folders; "" if there is none. On a file system that ignores case the
// two would be one file.
func (t Tree) foldedTwin(p Path) string {
	candidates := append(p.Ancestors(), p.String())
	for have := range t {
		for _, want := range candidates {
			if have != want && strings.EqualFold(have, want) {
				return have
			}
		}
	}
	return ""
}

// Mismatch says why a change does not fit the tree of its base commit, nil if it does: what is at the path, and above
// it, must suit the action. It is the rule of the gate base_tree, and of every Commit, since hosts follow none: they
// overwrite files that exist, write through links, and make commits that change nothing.
func (t Tree) Mismatch(c Change) *fault.Violation {
	for _, dir := range c.Path.Ancestors() {
		if entry, exists := t[dir]; exists && entry.Kind != KindDir {
			return mismatch(fault.ScopeDenied, c.Path, "not-a-folder",
				fmt.Sprintf("%s, above %s, is a %s on the base branch", dir, c.Path, entry.Kind),
				"propose a change to a plain file in a plain folder")
		}
	}
	entry, exists := t[c.Path.String()]
	switch {
	case exists && entry.Kind != KindFile:
		return mismatch(fault.ScopeDenied, c.Path, "not-a-file",
			fmt.Sprintf("%s is a %s on the base branch", c.Path, entry.Kind), "propose a change to a plain file")
	case exists && c.Action != ActionDelete && entry.ID == BlobID([]byte(c.Content), entry.ID):
		return mismatch(fault.NoChange, c.Path, "identical",
			fmt.Sprintf("%s already has exactly this content on the base branch", c.Path), "leave this file out")
	case exists && c.Action == ActionCreate:
		return mismatch(fault.Conflict, c.Path, "exists",
			fmt.Sprintf("%s already exists on the base branch", c.Path), "read it and use the action update")
	case !exists && c.Action == ActionUpdate:
		return mismatch(fault.Conflict, c.Path, "missing",
			fmt.Sprintf("%s does not exist on the base branch", c.Path), "use the action create, or correct the path")
	case !exists && c.Action != ActionCreate:
		return mismatch(fault.NoChange, c.Path, "missing",
			fmt.Sprintf("%s does not exist on the base branch, so there is nothing to delete", c.Path),
			"leave this file out: it is gone already")
	}
	if twin := t.foldedTwin(c.Path); !exists && twin != "" {
		return mismatch(fault.Conflict, c.Path, RulePathCollision,
			fmt.Sprintf("%s differs from %s on the base branch only in letter case", c.Path, twin),
			"use the spelling that exists")
	}
	return nil
}

func mismatch(code fault.Code, path Path, rule, message, suggestion string) *fault.Violation {
	return &fault.Violation{Code: code, Path: path.String(), Rule: rule, Message: message, Suggestion: suggestion}
}

// BlobID returns the object id that git gives to content. sample is any object id of the same repository: its length
// tells SHA-256 repositories (64 hex digits) from SHA-1 ones.
func BlobID(content []byte, sample string) string { return ObjectID("blob", content, sample) }

// ObjectID returns the id of an object of any kind, as git computes it; see BlobID.
func ObjectID(kind string, body []byte, sample string) string {
	framed := append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...)
	if len(sample) == sha256.Size*2 {
		sum := sha256.Sum256(framed)
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum(framed) // #nosec G401
	return hex.EncodeToString(sum[:])
}
