package fakegithub

import (
	"crypto/sha1" // #nosec G505: git's object ids
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// The modes of tree entries, as git and REST write them.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeSymlink    = "120000"
	modeDir        = "040000"
	modeSubmodule  = "160000"
)

// objects are the git objects of a repository's trees, under the ids that git would give them.
type objects struct {
	trees map[string][]treeEntry
	blobs map[string]string
	roots map[string]string // root tree by commit
}

type treeEntry struct {
	name, mode, id string
	file           memhost.File // of what is not a folder
}

func newObjects() *objects {
	return &objects{trees: map[string][]treeEntry{}, blobs: map[string]string{}, roots: map[string]string{}}
}

// kind returns git's kind of the object of an entry.
func (e treeEntry) kind() string {
	switch e.mode {
	case modeDir:
		return "tree"
	case modeSubmodule:
		return "commit"
	default:
		return "blob"
	}
}

func modeOf(f memhost.File) string {
	switch {
	case f.Kind == gitprovider.KindSymlink:
		return modeSymlink
	case f.Kind == gitprovider.KindSubmodule:
		return modeSubmodule
	case f.Executable:
		return modeExecutable
	default:
		return modeFile
	}
}

// fileOf is the inverse of modeOf.
func fileOf(path, mode, content string) memhost.File {
	f := memhost.File{Path: path, Kind: gitprovider.KindFile, Executable: mode == modeExecutable, Content: content}
	switch mode {
	case modeSymlink:
		f.Kind = gitprovider.KindSymlink
	case modeSubmodule:
		f.Kind = gitprovider.KindSubmodule
	}
	return f
}

// addTree stores the files, by their path from the tree's root, and gives the id of the tree.
func (o *objects) addTree(files map[string]memhost.File) string {
	below := map[string]map[string]memhost.File{}
	var entries []treeEntry
	for path, f := range files {
		if dir, rest, deeper := strings.Cut(path, "/"); deeper {
			if below[dir] == nil {
				below[dir] = map[string]memhost.File{}
			}
			below[dir][rest] = f
			continue
		}
		e := treeEntry{name: path, mode: modeOf(f), id: gitprovider.BlobID([]byte(f.Content), ""), file: f}
		if e.mode != modeSubmodule {
			o.blobs[e.id] = f.Content
		}
		entries = append(entries, e)
	}
	for dir, inside := range below {
		entries = append(entries, treeEntry{name: dir, mode: modeDir, id: o.addTree(inside)})
	}
	id := treeID(entries)
	o.trees[id] = entries
	return id
}

// treeID sorts the entries as git does, and gives the id of the tree.
func treeID(entries []treeEntry) string {
	sortName := func(e treeEntry) string {
		if e.mode == modeDir {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	var body []byte
	for _, e := range entries {
		raw, err := hex.DecodeString(e.id)
		if err != nil {
			panic(err) // ids are made here
		}
		body = fmt.Appendf(body, "%s %s\x00%s", strings.TrimPrefix(e.mode, "0"), e.name, raw)
	}
	sum := sha1.Sum(append(fmt.Appendf(nil, "tree %d\x00", len(body)), body...)) // #nosec G401
	return hex.EncodeToString(sum[:])
}

// root returns the tree of a commit.
func (o *objectReader) root(commit string) string {
	if id, known := o.at.objects.roots[commit]; known {
		return id
	}
	id := o.at.objects.addTree(o.at.repo.Tree(commit))
	o.at.objects.roots[commit] = id
	return id
}

// tree finds the entries of a tree.
func (o *objectReader) tree(id string) ([]treeEntry, bool) {
	o.index(func() bool { return o.at.objects.trees[id] != nil })
	entries, known := o.at.objects.trees[id]
	return entries, known
}

// blob finds the content of a blob.
func (o *objectReader) blob(id string) (string, bool) {
	o.index(func() bool { _, known := o.at.objects.blobs[id]; return known })
	content, known := o.at.objects.blobs[id]
	return content, known
}

// index stores the objects of all commits, until there are enough.
func (o *objectReader) index(enough func() bool) {
	for _, commit := range slices.Sorted(maps.Keys(o.at.repo.Commits)) {
		if enough() {
			return
		}
		o.root(commit)
	}
}

// entry finds an entry by its path from a tree; links are not followed.
func (o *objectReader) entry(tree, path string) (treeEntry, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	for _, e := range o.at.objects.trees[tree] {
		switch {
		case e.name != name:
		case !deeper:
			return e, true
		case e.mode == modeDir:
			return o.entry(e.id, rest)
		}
	}
	return treeEntry{}, false
}

// walk lists a tree and what is below it, in git's order, each with its path.
func (o *objectReader) walk(tree, prefix string, visit func(path string, e treeEntry)) {
	for _, e := range o.at.objects.trees[tree] {
		visit(prefix+e.name, e)
		if e.mode == modeDir {
			o.walk(e.id, prefix+e.name+"/", visit)
		}
	}
}

// filesOf gives the files of a tree by path.
func (o *objectReader) filesOf(tree string) map[string]memhost.File {
	out := map[string]memhost.File{}
	o.walk(tree, "", func(path string, e treeEntry) {
		if e.mode != modeDir {
			out[path] = fileOf(path, e.mode, e.file.Content)
		}
	})
	return out
}

// commitOf resolves what may stand for a commit: a full id, a branch with or without its prefix, HEAD. "" if nothing
// does.
func (o *objectReader) commitOf(expression string) string {
	if o.at.repo.Commits[expression] != nil {
		return expression
	}
	if expression == "HEAD" {
		return o.at.tip(o.at.repo.Default)
	}
	for _, prefix := range []string{"refs/heads/", "heads/", ""} {
		if branch, ok := strings.CutPrefix(expression, prefix); ok && o.at.tip(branch) != "" {
			return o.at.tip(branch)
		}
	}
	return ""
}
