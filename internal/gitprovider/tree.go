package gitprovider

import (
	"crypto/sha1" // #nosec G505: git's object ids, not a security measure
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// EntryKind is what a git tree entry is.
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

// FoldedTwin returns the path of an entry whose full path equals p when letter case is ignored but is spelled
// otherwise, for p itself or one of its ancestor folders; "" if there is none. On a file system that ignores case the
// two would be one file.
func (t Tree) FoldedTwin(p Path) string {
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

// BlobID is the object id that git gives to content. sample is any object id of the same repository: its length tells
// SHA-256 repositories (64 hex digits) from SHA-1 ones.
func BlobID(content []byte, sample string) string {
	header := "blob " + strconv.Itoa(len(content)) + "\x00"
	if len(sample) == sha256.Size*2 {
		sum := sha256.Sum256(append([]byte(header), content...))
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum(append([]byte(header), content...)) // #nosec G401
	return hex.EncodeToString(sum[:])
}
