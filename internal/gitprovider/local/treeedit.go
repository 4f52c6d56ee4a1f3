package local

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// treeEntry is one entry of a tree object, as it is written there.
type treeEntry struct{ mode, name, id string }

func (e treeEntry) isFolder() bool { return e.id != "" && canonical(e.mode) == modeFolder }

const (
	modeFolder     = "040000"
	modeFile       = "100644"
	modeExecutable = "100755"
)

// canonical returns a mode as git shows it. Old repositories hold modes such as 100664, which git takes for 100644.
func canonical(mode string) string {
	switch mode {
	case "":
		return "000000"
	case "40000":
		return modeFolder
	case modeExecutable, "120000", "160000":
		return mode
	}
	return modeFile
}

// treeEditor makes the trees of a new commit: those of the base with files put in and taken out. What does not fit is
// done as asked: verify finds it afterwards.
type treeEditor struct {
	objects *objects
	idLen   int
	folders map[string]*folder // by path, "" for the root
}

// folder is a tree that may be changed.
type folder struct {
	entries map[string]treeEntry // by name
	changed bool
}

// editTree begins with a tree of the base.
func editTree(o *objects, root string, idLen int) (*treeEditor, error) {
	e := &treeEditor{objects: o, idLen: idLen, folders: map[string]*folder{}}
	entries, err := readEntries(o, root, idLen)
	e.folders[""] = &folder{entries: entries}
	return e, err
}

// put puts a file in, with the folders above it.
func (e *treeEditor) put(path, mode, id string) error {
	dir, name := splitPath(path)
	f, err := e.folder(dir, true)
	if err != nil {
		return err
	}
	delete(e.folders, path) // if it was a folder
	f.entries[name], f.changed = treeEntry{mode, name, id}, true
	return nil
}

// remove removes a file; a missing one is not an error.
func (e *treeEditor) remove(path string) error {
	dir, name := splitPath(path)
	f, err := e.folder(dir, false)
	if f == nil || f.entries[name].id == "" || err != nil {
		return err
	}
	delete(f.entries, name)
	f.changed = true
	return nil
}

// folder returns the folder of a path; with make, one that is not there is made, in the place of what is. nil if there
// is none.
func (e *treeEditor) folder(path string, make bool) (*folder, error) {
	if f := e.folders[path]; f != nil {
		return f, nil
	}
	dir, name := splitPath(path)
	above, err := e.folder(dir, make)
	if above == nil || err != nil {
		return nil, err
	}
	f := &folder{entries: map[string]treeEntry{}}
	switch entry := above.entries[name]; {
	case entry.isFolder():
		if f.entries, err = readEntries(e.objects, entry.id, e.idLen); err != nil {
			return nil, err
		}
	case !make:
		return nil, nil
	}
	e.folders[path] = f
	return f, nil
}

// write adds the trees that have changed to the pack, and returns the root's id.
func (e *treeEditor) write(p *pack) (string, error) {
	paths := make([]string, 0, len(e.folders))
	for path := range e.folders {
		paths = append(paths, path)
	}
	// The deepest come first, so that the folders above know their ids.
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(strings.Count(b, "/")-strings.Count(a, "/"), len(b)-len(a), strings.Compare(a, b))
	})
	root := ""
	for _, path := range paths {
		f := e.folders[path]
		if !f.changed && path != "" {
			continue
		}
		body, err := encodeTree(f.entries)
		if err != nil {
			return "", err
		}
		if path == "" {
			root = p.add(packedTree, "tree", body)
			continue
		}
		dir, name := splitPath(path)
		above := e.folders[dir]
		if above == nil {
			continue // a file was put in its place
		}
		above.changed = true
		if len(f.entries) == 0 {
			delete(above.entries, name) // git has no empty folders
			continue
		}
		above.entries[name] = treeEntry{"40000", name, p.add(packedTree, "tree", body)}
	}
	return root, nil
}

// encodeTree returns the tree object of entries. Git sorts by name, and folders as if their names ended with a slash.
func encodeTree(entries map[string]treeEntry) ([]byte, error) {
	key := func(e treeEntry) string {
		if e.isFolder() {
			return e.name + "/"
		}
		return e.name
	}
	sorted := make([]treeEntry, 0, len(entries))
	for _, entry := range entries {
		sorted = append(sorted, entry)
	}
	slices.SortFunc(sorted, func(a, b treeEntry) int { return strings.Compare(key(a), key(b)) })
	var out []byte
	for _, entry := range sorted {
		id, err := hex.DecodeString(entry.id)
		if err != nil {
			return nil, fmt.Errorf("object id %.100q: %w", entry.id, err)
		}
		out = append(append(out, entry.mode+" "+entry.name+"\x00"...), id...)
	}
	return out, nil
}

// readEntries reads a tree object by the name of its entries. A tree that has a name twice is broken, since the name is
// ambiguous.
func readEntries(o *objects, id string, idLen int) (map[string]treeEntry, error) {
	raw, err := o.contents(id)
	if err != nil {
		return nil, err
	}
	entries := map[string]treeEntry{}
	for entry, err := range parseTree(raw, idLen) {
		if _, twice := entries[entry.name]; err != nil || twice {
			return nil, errBrokenTree
		}
		entries[entry.name] = entry
	}
	return entries, nil
}

// splitPath splits a path at its last slash.
func splitPath(path string) (dir, name string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}
