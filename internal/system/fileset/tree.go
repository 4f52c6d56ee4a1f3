package fileset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of a tree.
const (
	maxTreeFiles = 10_000
	maxTreeBytes = 256 << 20
	// MaxFileBytes bounds a file that is read or put in place.
	MaxFileBytes = 64 << 20
)

// Tree holds files by their path with slashes.
type Tree map[string]TreeFile

// TreeFile is a file of a Tree.
type TreeFile struct {
	Content    Content
	Executable bool
	size       int64
}

// Size returns the number of bytes of the file when it was read.
func (f TreeFile) Size() int64 { return f.size }

// Paths returns a tree's paths, sorted.
func (t Tree) Paths() []string { return slices.Sorted(maps.Keys(t)) }

// ReadTree reads the files below a folder of a root; a path that is a file is a tree of that file. Links are followed
// as far as they stay in the root; .git and .agentpack are left out, and other names that git takes for its own folder,
// or that have hidden characters, are an error. ok is false if there is nothing at the path. Files whose hash is known
// are left unread until they are asked for; known may be nil.
func ReadTree(root *files.Dir, name string, known *Hashes) (out Tree, ok bool, err error) {
	name = path.Clean(name)
	info, err := root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %s", name, pathlessError(err))
	}
	r := treeReader{root: root, tree: Tree{}, known: known}
	if !info.IsDir() {
		err = r.addFile(root, name, name, path.Base(name), info)
		return r.tree, true, err
	}
	err = r.readFolder(name, "", 0)
	return r.tree, true, err
}

type treeReader struct {
	root  *files.Dir
	tree  Tree
	bytes int64
	known *Hashes
}

// maxTreeDepth bounds folders in folders, so that links in a circle end.
const maxTreeDepth = 64

func (r *treeReader) readFolder(name, rel string, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("%s: has more than %d folders in each other", name, maxTreeDepth)
	}
	dir, err := r.root.Folder(name)
	if err != nil {
		return fmt.Errorf("%s: %s", name, pathlessError(err))
	}
	defer func() { _ = dir.Close() }()
	entries, complete, err := dir.Entries(".", maxTreeFiles)
	if err == nil && !complete {
		err = fmt.Errorf("has more than %d entries, which is the most that are read", maxTreeFiles)
	}
	if err != nil {
		return fmt.Errorf("%s: %s", name, pathlessError(err))
	}
	for _, e := range entries {
		if e.Name() == ".git" || e.Name() == ".agentpack" {
			continue
		}
		if err := files.CheckName(e.Name()); err != nil {
			return fmt.Errorf("%+q %w", path.Join(name, e.Name()), err)
		}
		inner, innerRel := path.Join(name, e.Name()), path.Join(rel, e.Name())
		from, as := dir, e.Name()
		info, err := dir.Lstat(as)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 { // it may lead to anywhere in the root
			from, as = r.root, inner
			info, err = r.root.Stat(inner)
		}
		if err != nil {
			return fmt.Errorf("%s: %s", inner, pathlessError(err))
		}
		if info.IsDir() {
			err = r.readFolder(inner, innerRel, depth+1)
		} else {
			err = r.addFile(from, as, inner, innerRel, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addFile takes a file, which is as in from. name is its name in the root, rel that in the tree.
func (r *treeReader) addFile(from *files.Dir, as, name, rel string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: is not a regular file", name)
	case info.Size() > MaxFileBytes:
		return fmt.Errorf("%s: has more than %d bytes", name, MaxFileBytes)
	case len(r.tree) == maxTreeFiles:
		return fmt.Errorf("%s: is the file after the %dth, which is the most that are read", name, maxTreeFiles)
	}
	if r.bytes+info.Size() > maxTreeBytes {
		return r.tooMuch(name)
	}
	full := filepath.Join(r.root.Name(), filepath.FromSlash(name))
	if hash, known := r.known.lookup(full, info); known {
		r.bytes += info.Size()
		r.tree[rel] = TreeFile{Content: r.later(full, hash), size: info.Size(), Executable: info.Mode()&0o100 != 0}
		return nil
	}
	began := r.known.time()
	content, info, err := from.Read(as, MaxFileBytes)
	if err != nil {
		return fmt.Errorf("%s: %s", name, pathlessError(err))
	}
	if r.bytes += int64(len(content)); r.bytes > maxTreeBytes {
		return r.tooMuch(name)
	}
	f := TreeFile{Content: Bytes(content), size: int64(len(content)), Executable: info.Mode()&0o100 != 0}
	if r.known.store(full, info, began, f.Content.SHA256()) {
		f.Content = r.later(full, f.Content.SHA256()) // what is kept in memory from one plan to the next has no bytes
	}
	r.tree[rel] = f
	return nil
}

func (r *treeReader) tooMuch(name string) error {
	return fmt.Errorf("%s: makes more than %d bytes together with the files before it", name, maxTreeBytes)
}

// later returns the content of a file that is read when it is asked for.
func (r *treeReader) later(full, hash string) Content {
	root := r.root.Name()
	return Content{hash: hash, read: func() ([]byte, error) {
		again, err := files.OpenDir(root)
		if err != nil {
			return nil, IOError(full, err)
		}
		defer func() { _ = again.Close() }()
		name, err := filepath.Rel(root, full)
		if err != nil {
			return nil, IOError(full, err)
		}
		content, _, err := again.Read(filepath.ToSlash(name), MaxFileBytes)
		if err != nil {
			return nil, IOError(full, err)
		}
		return content, nil
	}}
}

// Hash returns the hash of a tree as lock files have it: SHA-256 over path, SHA-256 and size of each file, a line each,
// sorted.
func (t Tree) Hash() string {
	var b strings.Builder
	for _, p := range t.Paths() {
		fmt.Fprintf(&b, "%s\n%s\n%d\n", p, t[p].Content.SHA256(), t[p].size)
	}
	return Hash([]byte(b.String()))
}

// Stage writes the files of a tree below a folder, where they wait until files.Writing moves the folder to its place.
// at is the file of an error.
func Stage(root *files.Writing, folder string, tree Tree) (at string, err error) {
	made := map[string]bool{}
	for _, name := range tree.Paths() {
		at = path.Join(folder, name)
		if dir := path.Dir(at); !made[dir] {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return at, err
			}
			made[dir] = true
		}
		content, err := tree[name].Content.Bytes()
		if err != nil {
			return at, err
		}
		if err := root.Create(at, content, fs.FileMode(modeOf(tree[name].Executable))); err != nil {
			return at, err
		}
	}
	return "", nil
}
