package fakegitea

import (
	"bytes"
	"crypto/sha1" // #nosec G505: git's object ids, not a security measure
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// node is a git object of a commit: a folder with its children or a file. Ids are git's own, so that clients may
// compute them.
type node struct {
	path     string // from the root, which is ""
	kind     gitprovider.EntryKind
	mode     string // six octal digits
	id       string
	content  string  // of a file or symlink
	children []*node // of a folder, in git's order
}

func (n *node) name() string {
	return n.path[strings.LastIndexByte(n.path, '/')+1:]
}

// size returns the size that the server shows: 0 for folders and submodules.
func (n *node) size() int { return len(n.content) }

// objects remembers the trees of one repository's commits, which never change, and finds objects by id.
type objects struct {
	roots map[string]*node // by commit
	byID  map[string]*node // trees and blobs
}

func newObjects() objects {
	return objects{roots: map[string]*node{}, byID: map[string]*node{}}
}

// root gives the tree of a commit.
func (o objects) root(repo *memhost.Repo, commit string) *node {
	if o.roots[commit] == nil {
		root := &node{kind: gitprovider.KindDir, mode: "040000"}
		for path, f := range repo.Tree(commit) {
			root.insert(path, f)
		}
		o.seal(root)
		o.roots[commit] = root
	}
	return o.roots[commit]
}

// object finds a tree or blob that some commit of the repository has.
func (o objects) object(repo *memhost.Repo, id string) *node {
	for commit := range repo.Commits {
		o.root(repo, commit)
	}
	return o.byID[id]
}

func (n *node) insert(path string, f memhost.File) {
	at := n
	for i := 0; i < len(path); i++ {
		if path[i] == '/' {
			at = at.folder(path[:i])
		}
	}
	at.children = append(at.children, &node{path: path, kind: f.Kind, mode: modeOf(f), content: f.Content})
}

func (n *node) folder(path string) *node {
	for _, child := range n.children {
		if child.path == path {
			return child
		}
	}
	child := &node{path: path, kind: gitprovider.KindDir, mode: "040000"}
	n.children = append(n.children, child)
	return child
}

func modeOf(f memhost.File) string {
	switch {
	case f.Kind == gitprovider.KindSymlink:
		return "120000"
	case f.Kind == gitprovider.KindSubmodule:
		return "160000"
	case f.Executable:
		return "100755"
	default:
		return "100644"
	}
}

// seal sorts as git does, and computes ids from the leaves up.
func (o objects) seal(n *node) {
	if n.kind != gitprovider.KindDir {
		n.id = gitprovider.BlobID([]byte(n.content), "")
		o.byID[n.id] = n
		return
	}
	sortKey := func(child *node) string {
		if child.kind == gitprovider.KindDir {
			return child.path + "/"
		}
		return child.path
	}
	slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(sortKey(a), sortKey(b)) })
	var raw bytes.Buffer
	for _, child := range n.children {
		o.seal(child)
		id, _ := hex.DecodeString(child.id)
		fmt.Fprintf(&raw, "%s %s\x00%s", strings.TrimPrefix(child.mode, "0"), child.name(), id)
	}
	sum := sha1.Sum(fmt.Appendf(nil, "tree %d\x00%s", raw.Len(), raw.Bytes())) // #nosec G401
	n.id = hex.EncodeToString(sum[:])
	o.byID[n.id] = n
}

// find gives the object at a path, or nil. It follows no link.
func (n *node) find(path string) *node {
	if path == "" {
		return n
	}
	for _, child := range n.children {
		if child.path == path {
			return child
		}
		if strings.HasPrefix(path, child.path+"/") {
			return child.find(path)
		}
	}
	return nil
}

// walk lists everything below a folder, folders before what is in them.
func (n *node) walk(deep bool) []*node {
	var out []*node
	for _, child := range n.children {
		out = append(out, child)
		if deep {
			out = append(out, child.walk(true)...)
		}
	}
	return out
}

// lastChange finds the commit that made the object at a path what it is in the given commit.
func (o objects) lastChange(repo *memhost.Repo, commit, path string) string {
	for {
		here := o.root(repo, commit).find(path)
		same := ""
		for _, parent := range repo.Commits[commit].Parents {
			if there := o.root(repo, parent).find(path); there != nil && here != nil && there.id == here.id {
				same = parent
				break
			}
		}
		if same == "" {
			return commit
		}
		commit = same
	}
}

// resolve finds the commit that a branch, a tag, a full commit id or HEAD stands for, or "".
func resolve(repo *memhost.Repo, st *repoState, name string) string {
	if name == "HEAD" {
		name = repo.Default
	}
	if tip := repo.Branches[name]; tip != "" {
		return tip
	}
	if tagged := st.Tags[name]; tagged != "" {
		return tagged
	}
	if repo.Commits[name] != nil {
		return name
	}
	return ""
}

// fileDiff is the change of one file.
type fileDiff struct {
	path, oldPath        string // oldPath: of a renamed file
	added, removed       bool
	additions, deletions int
}

// diff compares two trees, sorted by path. A file that vanished and one that appeared and is at least half the same are
// one renamed file, as git sees it.
func diff(before, after map[string]memhost.File) []fileDiff {
	paths := maps.Clone(before)
	if paths == nil {
		paths = map[string]memhost.File{}
	}
	maps.Copy(paths, after)
	var out []fileDiff
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		old, was := before[path]
		now, is := after[path]
		if was && is && old == now {
			continue
		}
		d := fileDiff{path: path, added: !was, removed: !is}
		d.additions, d.deletions = changedLines(old.Content, now.Content)
		out = append(out, d)
	}
	return pairRenames(out, before, after)
}

func pairRenames(list []fileDiff, before, after map[string]memhost.File) []fileDiff {
	gone := map[string]bool{}
	for i := range list {
		if !list[i].added {
			continue
		}
		for _, from := range list {
			if !from.removed || gone[from.path] || before[from.path].Kind != after[list[i].path].Kind {
				continue
			}
			old, now := before[from.path].Content, after[list[i].path].Content
			additions, deletions := changedLines(old, now)
			if old == "" || 2*(additions+deletions) > len(lines(old))+len(lines(now)) {
				continue
			}
			gone[from.path] = true
			list[i].oldPath, list[i].added = from.path, false
			list[i].additions, list[i].deletions = additions, deletions
			break
		}
	}
	return slices.DeleteFunc(list, func(d fileDiff) bool { return d.removed && gone[d.path] })
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// changedLines counts the lines outside the longest common subsequence.
func changedLines(before, after string) (additions, deletions int) {
	a, b := lines(before), lines(after)
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j], above)
			}
			diagonal = above
		}
	}
	common := row[len(b)]
	return len(b) - common, len(a) - common
}

func totals(list []fileDiff) (additions, deletions int) {
	for _, d := range list {
		additions, deletions = additions+d.additions, deletions+d.deletions
	}
	return additions, deletions
}
