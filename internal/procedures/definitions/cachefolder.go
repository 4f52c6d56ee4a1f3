package definitions

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/filelock"
	"github.com/claudeops/claudeops/internal/system/files"
)

// The cache's own folder, and in it the list of its files: a line for each, such as downloads/HEX. A file is listed
// before it is written and until it is removed, so that the list may name too much, and never too little.
const (
	cacheFolder   = "claudeops"
	cacheListName = "files"
	cacheLockName = "lock"
	maxListBytes  = 4 << 20
	maxEntryBytes = maxFetchBytes + 64<<10
	cacheLockWait = 2 * time.Second
	cacheLockPoll = 10 * time.Millisecond
)

// errNotCached says that a cache keeps nothing.
var errNotCached = errors.New("nothing is kept")

// cacheList is the list as it was read last.
type cacheList struct {
	info  fs.FileInfo // nil for none
	names []string
	bytes int64 // of all files
}

// readPlain reads a file of a folder that the operator named; a symbolic link is not followed.
func readPlain(dir, name string) ([]byte, error) {
	root, err := files.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readEntry(root, name)
}

func readEntry(root *files.Dir, name string) ([]byte, error) {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or[error](err, &fs.PathError{Op: "open", Path: name, Err: files.ErrNotRegular})
	}
	content, _, err := root.Read(name, maxEntryBytes)
	return content, err
}

// cacheFolders returns the parts of the cache, in the order in which they are made. Each must be a folder, no link to
// one.
func cacheFolders() []string {
	return []string{cacheFolder, cacheFolder + "/registries", cacheFolder + "/downloads"}
}

// open opens the cache's own folder, to be read.
func (c *Cache) open() (*files.Dir, error) {
	if c.dir == "" {
		return nil, errNotCached
	}
	root, err := files.OpenDir(c.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for _, name := range cacheFolders() {
		info, err := root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: name, Err: files.ErrNotFolder}
		}
	}
	return root.Folder(cacheFolder)
}

// openWriting opens the cache's own folder, to be written, and makes it.
func (c *Cache) openWriting() (*files.Writing, error) {
	if c.dir == "" || c.frozen {
		return nil, errNotCached
	}
	if err := files.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	root, err := files.OpenWriting(c.dir)
	if err != nil {
		return nil, err
	}
	root.Unsynced = true // what is broken is fetched again
	defer func() { _ = root.Close() }()
	for _, name := range cacheFolders() {
		if err := root.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
	}
	return root.Folder(cacheFolder)
}

// read reads a file of the cache.
func (c *Cache) read(name string) ([]byte, error) {
	root, err := c.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readEntry(root, name)
}

// change calls what writes the cache, one at a time of all processes.
func (c *Cache) change(do func(root *files.Writing) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	root, err := c.openWriting()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	lock, err := root.OpenLock(cacheLockName)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	for deadline := time.Now().Add(cacheLockWait); ; time.Sleep(cacheLockPoll) {
		taken, err := filelock.Try(lock, true)
		if taken {
			return do(root)
		}
		if err != nil || time.Now().After(deadline) {
			return cmp.Or(err, errors.New("another process writes the cache"))
		}
	}
}

// write replaces a file of the cache at once, and removes the oldest others that leave no room for it.
func (c *Cache) write(name string, content []byte) error {
	if int64(len(content)) > min(c.maxBytes, maxEntryBytes) || name == "" {
		return errNotCached
	}
	return c.change(func(root *files.Writing) error {
		list, err := c.list(root)
		if err != nil {
			return err
		}
		if !slices.Contains(list.names, name) {
			if err := c.makeRoom(root, list, int64(len(content))); err != nil {
				return err
			}
			if err := c.writeList(root, list, append(list.names, name)); err != nil {
				return err
			}
		}
		if old, err := root.Lstat(name); err == nil {
			list.bytes -= old.Size()
		}
		err = root.Replace(name, content, 0o600)
		if err == nil {
			list.bytes += int64(len(content))
		}
		return err
	})
}

// list returns the list of files, read again if another process has changed it.
func (c *Cache) list(root *files.Writing) (*cacheList, error) {
	info, err := root.Lstat(cacheListName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.listed = &cacheList{}
		return c.listed, nil
	case err != nil:
		return nil, err
	case c.listed != nil && c.listed.info != nil && os.SameFile(info, c.listed.info) &&
		info.Size() == c.listed.info.Size() && info.ModTime().Equal(c.listed.info.ModTime()):
		return c.listed, nil
	}
	names, info, err := readList(&root.Dir)
	if err != nil {
		return nil, err
	}
	c.listed = &cacheList{info: info, names: names}
	for _, e := range statAll(&root.Dir, names) {
		c.listed.bytes += e.size
	}
	return c.listed, nil
}

func readList(root *files.Dir) ([]string, fs.FileInfo, error) {
	info, err := root.Lstat(cacheListName)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: cacheListName, Err: files.ErrNotRegular}
	}
	if err != nil {
		return nil, nil, err
	}
	text, info, err := root.Read(cacheListName, maxListBytes)
	if err != nil {
		return nil, nil, err
	}
	ours := regexp.MustCompile(`^(registries/[0-9a-f]{64}\.json|downloads/[0-9a-f]{64})$`)
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); ours.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), info, nil
}

// writeList makes names the list. One more name is written behind the others.
func (c *Cache) writeList(root *files.Writing, list *cacheList, names []string) (err error) {
	if list.info != nil && len(names) == len(list.names)+1 {
		err = root.Append(cacheListName, []byte(names[len(names)-1]+"\n"))
	} else {
		err = root.Replace(cacheListName, listText(names), 0o600)
	}
	if err != nil {
		return err
	}
	list.names = names
	list.info, err = root.Lstat(cacheListName)
	return err
}

func listText(names []string) []byte {
	var text bytes.Buffer
	for _, name := range names {
		text.WriteString(name + "\n")
	}
	return text.Bytes()
}

// makeRoom removes the oldest files until a new one of size bytes fits.
func (c *Cache) makeRoom(root *files.Writing, list *cacheList, size int64) error {
	if list.bytes+size <= c.maxBytes && len(list.names) < c.maxEntries {
		return nil
	}
	entries := statAll(&root.Dir, list.names)
	slices.SortFunc(entries, func(a, b cached) int { return a.at.Compare(b.at) })
	gone := map[string]bool{}
	for _, e := range entries {
		// A quarter more than is needed, so that not every file that follows looks at all of them again.
		if list.bytes+size <= c.maxBytes*3/4 && len(list.names)-len(gone) <= c.maxEntries*3/4 {
			break
		}
		if err := root.Remove(e.name); err != nil {
			return err
		}
		list.bytes -= e.size
		gone[e.name] = true
	}
	return c.writeList(root, list, without(list.names, gone))
}

func without(names []string, gone map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return gone[name] })
}

// statAll returns the files of a list that are there, as the system has them.
func statAll(root *files.Dir, names []string) (out []cached) {
	for _, name := range names {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
			out = append(out, cached{name: name, size: info.Size(), at: info.ModTime()})
		}
	}
	return out
}

// entries lists the cache's files.
func (c *Cache) entries() ([]cached, error) {
	root, err := c.open()
	if errors.Is(err, errNotCached) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return entriesOf(root)
}

func entriesOf(root *files.Dir) ([]cached, error) {
	names, _, err := readList(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := statAll(root, names)
	for i, e := range entries {
		if e.download() {
			continue
		}
		if content, err := readEntry(root, e.name); err == nil {
			entries[i].at = fetchedAt(content, e.at)
		}
	}
	return entries, nil
}
