package local

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/sha1" // #nosec G505: git's own format
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/git"
)

// objects reads objects one after the other from one git cat-file process. It is asked by object id only. It is not
// safe for concurrent use.
type objects struct {
	ctx  context.Context // of the call that opened it, and which it does not outlive
	git  *runner
	call gitCommand
	talk *git.ObjectReader
	out  *bufio.Reader
}

// objectInfo says what an object is.
type objectInfo struct {
	id, kind string
	size     int64
}

var errMissing = errors.New("the object is missing")

// onceMore repeats what misses an object: somebody may have packed it away meanwhile.
func onceMore(read func() error) error {
	err := read()
	if errors.Is(err, errMissing) {
		err = read()
	}
	return err
}

// openObjects starts the process; close must follow.
func (w *workspace) openObjects(ctx context.Context) (*objects, error) {
	o := &objects{ctx: ctx, git: w.git, call: w.newCommand(nil, nil, "cat-file", "--batch-command")}
	var err error
	if o.talk, err = w.git.git.OpenObjectReader(ctx, w.git.callOf(o.call), w.git.limits(o.call)); err != nil {
		return nil, w.git.outcome(ctx, o.call, git.Result{}, err)
	}
	o.out = bufio.NewReader(o.talk.Out)
	return o, nil
}

// close ends the process. problem is an error that occurred meanwhile, or nil: a fault is returned unchanged; for
// another error, the reason that git gives is preferred.
func (o *objects) close(problem error) error {
	result, err := o.talk.Close()
	err = o.git.outcome(o.ctx, o.call, result, err)
	if known := (*fault.Error)(nil); errors.As(problem, &known) {
		return problem
	}
	if err == nil && problem != nil {
		err = o.call.of.explainPartial(o.ctx, fault.Wrap(problem, fault.UpstreamError,
			"an object of the repository cannot be read; ask the operator to run git fsck"))
	}
	return err
}

// info says what an object is.
func (o *objects) info(name string) (objectInfo, error) {
	if _, err := fmt.Fprintf(o.talk.In, "info %s\n", name); err != nil {
		return objectInfo{}, err
	}
	return o.header()
}

// contents reads an object of at most maxOutput bytes.
func (o *objects) contents(name string) ([]byte, error) {
	if _, err := fmt.Fprintf(o.talk.In, "contents %s\n", name); err != nil {
		return nil, err
	}
	obj, err := o.header()
	if err != nil {
		return nil, err
	}
	if obj.size > maxOutput {
		return nil, git.ErrTooMuch
	}
	data := make([]byte, obj.size+1) // git ends the contents with a line feed
	if _, err := io.ReadFull(o.out, data); err != nil {
		return nil, err
	}
	return data[:obj.size], nil
}

// header reads "<id> <type> <size>", or "<name> missing".
func (o *objects) header() (objectInfo, error) {
	line, err := o.out.ReadString('\n')
	if err != nil {
		return objectInfo{}, err
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return objectInfo{}, fmt.Errorf("%w: %.100q", errMissing, line)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return objectInfo{}, fmt.Errorf("unexpected answer %.100q", line)
	}
	return objectInfo{id: fields[0], kind: fields[1], size: size}, nil
}

// pack is a set of whole objects in the form of git's pack files (gitformat-pack(5)), for git unpack-objects.
type pack struct {
	sample  string // any object id of the repository; its length tells the object format
	objects bytes.Buffer
	count   uint32
	err     error // of the compression
}

// Numbers of the kinds of objects in a pack.
const (
	packedCommit = 1
	packedTree   = 2
	packedBlob   = 3
)

// addObject adds an object and returns its id.
func (p *pack) addObject(kind byte, name string, body []byte) string {
	p.count++
	size := len(body)
	head := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.objects.WriteByte(head | 0x80)
		head = byte(size & 0x7f)
	}
	p.objects.WriteByte(head)
	z := zlib.NewWriter(&p.objects)
	if _, err := z.Write(body); err != nil {
		p.err = err
	}
	if err := z.Close(); err != nil {
		p.err = err
	}
	return gitprovider.ObjectID(name, body, p.sample)
}

// bytes returns the whole pack: its head, the objects, and their hash.
func (p *pack) bytes() ([]byte, error) {
	out := append([]byte("PACK"), 0, 0, 0, 2) // version 2
	out = binary.BigEndian.AppendUint32(out, p.count)
	out = append(out, p.objects.Bytes()...)
	h := sha1.New() // #nosec G401: git's own format
	if len(p.sample) == sha256Len {
		h = sha256.New()
	}
	h.Write(out)
	return h.Sum(out), p.err
}

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

// treeEntry is one entry of a tree object, as it is written there.
type treeEntry struct{ mode, name, id string }

func (e treeEntry) isFolder() bool { return e.id != "" && canonicalMode(e.mode) == modeFolder }

const (
	modeFolder     = "040000"
	modeFile       = "100644"
	modeExecutable = "100755"
)

// canonicalMode returns a mode as git shows it. Old repositories hold modes such as 100664, which git takes for 100644.
func canonicalMode(mode string) string {
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
	folders map[string]*editableTree // by path, "" for the root
}

// editableTree is a tree that may be changed.
type editableTree struct {
	entries map[string]treeEntry // by name
	changed bool
}

// editTree begins with a tree of the base.
func editTree(o *objects, root string, idLen int) (*treeEditor, error) {
	e := &treeEditor{objects: o, idLen: idLen, folders: map[string]*editableTree{}}
	entries, err := readEntries(o, root, idLen)
	e.folders[""] = &editableTree{entries: entries}
	return e, err
}

// putFile puts a file in, with the folders above it.
func (e *treeEditor) putFile(path, mode, id string) error {
	dir, name := splitPath(path)
	f, err := e.openFolder(dir, true)
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
	f, err := e.openFolder(dir, false)
	if f == nil || f.entries[name].id == "" || err != nil {
		return err
	}
	delete(f.entries, name)
	f.changed = true
	return nil
}

// openFolder returns the folder of a path; with make, one that is not there is made, in the place of what is. nil if
// there is none.
func (e *treeEditor) openFolder(path string, make bool) (*editableTree, error) {
	if f := e.folders[path]; f != nil {
		return f, nil
	}
	dir, name := splitPath(path)
	above, err := e.openFolder(dir, make)
	if above == nil || err != nil {
		return nil, err
	}
	f := &editableTree{entries: map[string]treeEntry{}}
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

// packTrees adds the trees that have changed to the pack, and returns the root's id.
func (e *treeEditor) packTrees(p *pack) (string, error) {
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
			root = p.addObject(packedTree, "tree", body)
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
		above.entries[name] = treeEntry{"40000", name, p.addObject(packedTree, "tree", body)}
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
