package definitions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
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
	found := read(c.read(indexName(r)))
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

// keep writes an index. What cannot be written is asked for again next time.
func (c *Cache) keep(r Registry, manifest []byte, etag string) error {
	at, err := json.Marshal(c.now().UnixMilli())
	if err != nil {
		return err
	}
	content, err := json.Marshal(cachedIndex{URL: withoutPassword(r.URL), Manifest: manifest, FetchedAt: at, TTL: r.TTL,
		ETag: etag})
	if err != nil {
		return err
	}
	return c.write(indexName(r), content)
}

// download returns the cached content with a checksum.
func (c *Cache) download(checksum string) ([]byte, bool) {
	name := downloadName(checksum)
	if name == "" {
		return nil, false
	}
	content, err := c.read(name)
	return content, err == nil && checksumOf(content) == checksum
}

// keepDownload keeps content, which has the checksum.
func (c *Cache) keepDownload(checksum string, content []byte) error {
	return c.write(downloadName(checksum), content)
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
	err = c.change(func(root *files.Writing) error {
		list, err := c.list(root)
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
