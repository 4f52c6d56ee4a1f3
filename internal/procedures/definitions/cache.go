package definitions

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of a cache. What was fetched first goes first.
const (
	maxCacheBytes   = 128 << 20
	maxCacheEntries = 5000
)

// Cache keeps what registries sent: their indexes, and what those name by its checksum. Its files lie in a folder of
// its own below the cache's, and a list there names them: nothing else is ever written over or removed, and no symbolic
// link is followed. Indexes that Forge has kept are read, and left alone. A file that cannot be read is as good as
// none. It is safe for concurrent use, also by several processes.
type Cache struct {
	dir    string   // absolute; "" keeps nothing
	forges []string // folders where Forge keeps indexes; read only
	frozen bool     // nothing is written
	now    func() time.Time

	maxBytes   int64
	maxEntries int

	mu     sync.Mutex // guards what follows
	listed *cacheList
}

// newCache makes a cache in a folder, which need not exist. older is another one whose indexes are read; frozen says
// that nothing may be written.
func newCache(dir, older string, frozen bool, now func() time.Time) *Cache {
	c := &Cache{dir: dir, frozen: frozen, now: now, maxBytes: maxCacheBytes, maxEntries: maxCacheEntries}
	for _, forges := range []string{dir, older} {
		if forges != "" {
			c.forges = append(c.forges, forges)
		}
	}
	return c
}

// cachedIndex is the form of an index in the cache, ours and Forge's.
type cachedIndex struct {
	URL       string          `json:"url"`
	Manifest  json.RawMessage `json:"manifest"`
	FetchedAt json.RawMessage `json:"fetched_at"` // milliseconds since 1970
	TTL       int             `json:"ttl"`        // seconds
	ETag      string          `json:"etag,omitempty"`
}

// indexName returns the name of a registry's index in our folder.
func indexName(r Registry) string {
	sum := sha256.Sum256([]byte(r.Name + "\n" + r.URL))
	return "registries/" + hex.EncodeToString(sum[:]) + ".json"
}

// downloadName returns the name of what has a checksum; "" for a checksum that is none.
func downloadName(checksum string) string {
	if !isChecksum(checksum) {
		return ""
	}
	return "downloads/" + strings.TrimPrefix(checksum, "sha256:")
}

// forgesName returns Forge's name of a registry's file; names that are not file names are written in hexadecimal.
func forgesName(registry string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9._@-]{0,99}$`).MatchString(registry) {
		return registry + ".json"
	}
	return fmt.Sprintf("x%x.json", registry)
}

// index returns the cached index of a registry. fresh says that it need not be fetched again.
func (c *Cache) index(r Registry) (kept cachedIndex, fresh, ok bool) {
	read := func(content []byte, err error) bool {
		kept = cachedIndex{}
		return err == nil && json.Unmarshal(content, &kept) == nil && len(kept.Manifest) > 0
	}
	found := read(c.readCached(indexName(r)))
	for i := 0; i < len(c.forges) && !found; i++ {
		found = read(readPlain(c.forges[i], forgesName(r.Name))) && kept.URL == r.URL
	}
	if !found {
		return cachedIndex{}, false, false
	}
	at, known := momentOf(kept.FetchedAt)
	age := c.now().Sub(at)
	return kept, known && age >= 0 && age < time.Duration(r.TTL)*time.Second, true
}

// storeIndex writes an index. What cannot be written is asked for again next time.
func (c *Cache) storeIndex(r Registry, manifest []byte, etag string) error {
	at, err := json.Marshal(c.now().UnixMilli())
	if err != nil {
		return err
	}
	content, err := json.Marshal(cachedIndex{URL: withoutPassword(r.URL), Manifest: manifest, FetchedAt: at, TTL: r.TTL,
		ETag: etag})
	if err != nil {
		return err
	}
	return c.writeCached(indexName(r), content)
}

// download returns the cached content with a checksum.
func (c *Cache) download(checksum string) ([]byte, bool) {
	name := downloadName(checksum)
	if name == "" {
		return nil, false
	}
	content, err := c.readCached(name)
	return content, err == nil && checksumOf(content) == checksum
}

// keepDownload keeps content, which has the checksum.
func (c *Cache) keepDownload(checksum string, content []byte) error {
	return c.writeCached(downloadName(checksum), content)
}

// momentOf reads a time as files of the cache have it: milliseconds or seconds since 1970, or RFC 3339.
func momentOf(raw json.RawMessage) (time.Time, bool) {
	var n float64
	if json.Unmarshal(raw, &n) == nil {
		if n > 1e11 { // in seconds that is the year 5138
			return time.UnixMilli(int64(n)), true
		}
		return time.Unix(int64(n), 0), true
	}
	var at time.Time
	err := json.Unmarshal(raw, &at)
	return at, err == nil
}

// CacheStats says what the cache holds. Sizes are in bytes.
type CacheStats struct {
	Indexes, Downloads        int
	IndexBytes, DownloadBytes int64
	OldestIndex, NewestIndex  time.Time // zero without any
	Location                  string
}

// cached is a file of the cache.
type cached struct {
	name string
	size int64
	at   time.Time // when it was fetched
}

func (e cached) download() bool { return path.Dir(e.name) == "downloads" }

// fetchedAt returns when an index was fetched, by its file, or else when the file was written.
func fetchedAt(content []byte, written time.Time) time.Time {
	var kept struct {
		FetchedAt json.RawMessage `json:"fetched_at"`
	}
	if json.Unmarshal(content, &kept) != nil {
		return written
	}
	if at, ok := momentOf(kept.FetchedAt); ok {
		return at
	}
	return written
}

// stats counts what the cache holds.
func (c *Cache) stats() (CacheStats, error) {
	s := CacheStats{Location: c.dir}
	entries, err := c.entries()
	for _, e := range entries {
		if e.download() {
			s.Downloads++
			s.DownloadBytes += e.size
			continue
		}
		s.Indexes++
		s.IndexBytes += e.size
		if s.OldestIndex.IsZero() || e.at.Before(s.OldestIndex) {
			s.OldestIndex = e.at
		}
		if e.at.After(s.NewestIndex) {
			s.NewestIndex = e.at
		}
	}
	return s, err
}

// CacheClearing says what is to be removed.
type CacheClearing struct {
	Indexes, Downloads bool
	OlderThan          time.Duration // 0: of any age
}

// Cleared says what was removed.
type Cleared struct {
	Indexes, Downloads int
	Bytes              int64
}

func (c *Cache) selected(entries []cached, what CacheClearing) (out []cached) {
	for _, e := range entries {
		wanted := e.download() && what.Downloads || !e.download() && what.Indexes
		if wanted && (what.OlderThan <= 0 || c.now().Sub(e.at) >= what.OlderThan) {
			out = append(out, e)
		}
	}
	return out
}

func (o *Cleared) add(e cached) {
	o.Bytes += e.size
	if e.download() {
		o.Downloads++
	} else {
		o.Indexes++
	}
}

// clear removes files of the cache; with pretend it only says which.
func (c *Cache) clear(what CacheClearing, pretend bool) (Cleared, error) {
	var out Cleared
	entries, err := c.entries()
	if err != nil || pretend || len(entries) == 0 {
		for _, e := range c.selected(entries, what) {
			out.add(e)
		}
		return out, err
	}
	err = c.rewrite(func(root *files.Writing) error {
		list, err := c.cachedFiles(root)
		if err != nil {
			return err
		}
		entries, err := entriesOf(&root.Dir)
		if err != nil {
			return err
		}
		gone := map[string]bool{}
		for _, e := range c.selected(entries, what) {
			if err := root.Remove(e.name); err != nil {
				return err
			}
			out.add(e)
			list.bytes -= e.size
			gone[e.name] = true
		}
		return c.writeList(root, list, without(list.names, gone))
	})
	return out, err
}

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

// openCacheDir opens the cache's own folder, to be read.
func (c *Cache) openCacheDir() (*files.Dir, error) {
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

// readCached reads a file of the cache.
func (c *Cache) readCached(name string) ([]byte, error) {
	root, err := c.openCacheDir()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readEntry(root, name)
}

// rewrite calls what writes the cache, one at a time of all processes.
func (c *Cache) rewrite(do func(root *files.Writing) error) error {
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
		taken, err := files.TryLock(lock, true)
		if taken {
			return do(root)
		}
		if err != nil || time.Now().After(deadline) {
			return cmp.Or(err, errors.New("another process writes the cache"))
		}
	}
}

// writeCached replaces a file of the cache at once, and removes the oldest others that leave no room for it.
func (c *Cache) writeCached(name string, content []byte) error {
	if int64(len(content)) > min(c.maxBytes, maxEntryBytes) || name == "" {
		return errNotCached
	}
	return c.rewrite(func(root *files.Writing) error {
		list, err := c.cachedFiles(root)
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

// cachedFiles returns the list of files, read again if another process has changed it.
func (c *Cache) cachedFiles(root *files.Writing) (*cacheList, error) {
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
	root, err := c.openCacheDir()
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
