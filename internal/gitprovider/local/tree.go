package local

import (
	"bytes"
	"encoding/hex"
	"errors"
	"iter"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

var errBrokenTree = errors.New("the tree object is malformed")

// readTrees lists the root of a commit and every folder above the paths that exists, each once.
func readTrees(o *objects, commit string, paths []gitprovider.Path, idLen int) (gitprovider.Tree, error) {
	tree := gitprovider.Tree{}
	if err := readTree(o, "", commit+"^{tree}", idLen, tree); err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, p := range paths {
		for _, dir := range p.Ancestors() {
			entry, exists := tree[dir]
			if !exists || entry.Kind != gitprovider.KindDir {
				break // nothing below it
			}
			if read[dir] {
				continue
			}
			read[dir] = true
			if err := readTree(o, dir, entry.ID, idLen, tree); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}

// readTree adds the entries of one folder.
func readTree(o *objects, dir, name string, idLen int, into gitprovider.Tree) error {
	raw, err := o.contents(name)
	if err != nil {
		return err
	}
	for entry, err := range parseTree(raw, idLen) {
		if err != nil {
			return err
		}
		into[join(dir, entry.name)] = newEntry(entry.mode, entry.id)
	}
	return nil
}

// parseTree gives the entries of a tree object, a sequence of "<mode> <name>\0<binary object id>". An error ends it.
func parseTree(raw []byte, idLen int) iter.Seq2[treeEntry, error] {
	return func(yield func(treeEntry, error) bool) {
		for len(raw) > 0 {
			mode, rest, okMode := bytes.Cut(raw, []byte(" "))
			file, rest, okName := bytes.Cut(rest, []byte{0})
			if !okMode || !okName || len(rest) < idLen/2 || len(file) == 0 {
				yield(treeEntry{}, errBrokenTree)
				return
			}
			if !yield(treeEntry{string(mode), string(file), hex.EncodeToString(rest[:idLen/2])}, nil) {
				return
			}
			raw = rest[idLen/2:]
		}
	}
}

// join does not clean the name, unlike path.Join: it comes from a tree, and must be seen as it is.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// newEntry reads a mode of a tree object. Old repositories hold modes such as 100664, which git takes for 100644.
func newEntry(mode, id string) gitprovider.Entry {
	switch mode {
	case "40000":
		return gitprovider.Entry{Kind: gitprovider.KindDir, ID: id}
	case "120000":
		return gitprovider.Entry{Kind: gitprovider.KindSymlink, ID: id}
	case "160000":
		return gitprovider.Entry{Kind: gitprovider.KindSubmodule, ID: id}
	default:
		return gitprovider.Entry{Kind: gitprovider.KindFile, Executable: mode == "100755", ID: id}
	}
}

// readContents reads those of the paths that are regular files of at most MaxContentRead bytes.
func readContents(o *objects, tree gitprovider.Tree, paths []gitprovider.Path) (map[gitprovider.Path][]byte, error) {
	contents := map[gitprovider.Path][]byte{}
	for _, p := range paths {
		entry, exists := tree[p.String()]
		if !exists || entry.Kind != gitprovider.KindFile {
			continue
		}
		obj, err := o.info(entry.ID)
		if err != nil {
			return nil, err
		}
		if obj.size > gitprovider.MaxContentRead {
			continue
		}
		if contents[p], err = o.contents(entry.ID); err != nil {
			return nil, err
		}
	}
	return contents, nil
}
