package gitprovider

import (
	"crypto/sha1" // #nosec G505: git's object ids, not a security measure
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
)

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
