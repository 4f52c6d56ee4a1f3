package gitprovider

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
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
