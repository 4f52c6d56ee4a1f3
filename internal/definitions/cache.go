package definitions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Cache keeps what registries sent: the index of each as NAME.json, and what indexes name by its checksum as downloads/HEX.
// Its files are those of Forge, so that both may use one folder. A file that cannot be read is as good as none.
type Cache struct {
	dir   string
	older string // where Forge kept indexes before; read only. "" for none
	now   func() time.Time
}

// NewCache makes a cache in a folder, which need not exist. older is another one whose indexes are read.
func NewCache(dir, older string, now func() time.Time) *Cache {
	return &Cache{dir: dir, older: older, now: now}
}

// cachedIndex is the form of an index in the cache.
type cachedIndex struct {
	URL       string          `json:"url"`
	Manifest  json.RawMessage `json:"manifest"`
	FetchedAt json.RawMessage `json:"fetched_at"` // milliseconds since 1970
	TTL       int             `json:"ttl"`        // seconds
	ETag      string          `json:"etag,omitempty"`
}

// fileName is the name of a registry's file; names that are no file names are written in hexadecimal.
func fileName(registry string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9._@-]{0,99}$`).MatchString(registry) {
		return registry + ".json"
	}
	return fmt.Sprintf("x%x.json", registry)
}

// index is what is kept of a registry's index at this URL. fresh says that it need not be asked for again.
func (c *Cache) index(r Registry) (kept cachedIndex, fresh, ok bool) {
	for _, dir := range []string{c.dir, c.older} {
		if dir == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, fileName(r.Name)))
		if err != nil || json.Unmarshal(content, &kept) != nil || kept.URL != r.URL || len(kept.Manifest) == 0 {
			continue
		}
		at, known := momentOf(kept.FetchedAt)
		age := c.now().Sub(at)
		return kept, known && age >= 0 && age < time.Duration(r.TTL)*time.Second, true
	}
	return cachedIndex{}, false, false
}

// keep writes an index. What cannot be written is asked for again next time.
func (c *Cache) keep(r Registry, manifest []byte, etag string) error {
	at, err := json.Marshal(c.now().UnixMilli())
	if err != nil {
		return err
	}
	content, err := json.Marshal(cachedIndex{URL: r.URL, Manifest: manifest, FetchedAt: at, TTL: r.TTL, ETag: etag})
	if err != nil {
		return err
	}
	return c.write(fileName(r.Name), content)
}

// download is what is kept under a checksum.
func (c *Cache) download(checksum string) ([]byte, bool) {
	content, err := os.ReadFile(filepath.Join(c.dir, "downloads", hexOf(checksum)))
	return content, err == nil && checksumOf(content) == checksum
}

// keepDownload keeps content, which has the checksum.
func (c *Cache) keepDownload(checksum string, content []byte) error {
	return c.write(filepath.Join("downloads", hexOf(checksum)), content)
}

// hexOf is the part of a checksum that names its file.
func hexOf(checksum string) string { return strings.TrimPrefix(checksum, "sha256:") }

// write replaces a file of the cache at once.
func (c *Cache) write(name string, content []byte) error {
	if c.dir == "" {
		return nil
	}
	name = filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
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
	name     string
	download bool
	size     int64
	at       time.Time // when it was fetched
}

// entries lists the cache's files.
func (c *Cache) entries() ([]cached, error) {
	var out []cached
	for _, dir := range []struct {
		name     string
		download bool
	}{{c.dir, false}, {filepath.Join(c.dir, "downloads"), true}, {c.older, false}} {
		if c.dir == "" || dir.name == "" {
			continue
		}
		files, err := os.ReadDir(dir.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() || !dir.download && filepath.Ext(f.Name()) != ".json" {
				continue
			}
			e := cached{name: filepath.Join(dir.name, f.Name()), download: dir.download, size: info.Size(), at: info.ModTime()}
			if !dir.download {
				e.at = fetchedAt(e.name, e.at)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// fetchedAt is when an index was fetched, as its file says, or else when the file was written.
func fetchedAt(name string, written time.Time) time.Time {
	var kept struct {
		FetchedAt json.RawMessage `json:"fetched_at"`
	}
	content, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(content, &kept) != nil {
		return written
	}
	if at, ok := momentOf(kept.FetchedAt); ok {
		return at
	}
	return written
}

// Stats counts what the cache holds.
func (c *Cache) Stats() (CacheStats, error) {
	s := CacheStats{Location: c.dir}
	entries, err := c.entries()
	for _, e := range entries {
		if e.download {
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

// Clear removes files of the cache; with pretend it only says which.
func (c *Cache) Clear(what CacheClearing, pretend bool) (Cleared, error) {
	var out Cleared
	entries, err := c.entries()
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		wanted := e.download && what.Downloads || !e.download && what.Indexes
		if !wanted || what.OlderThan > 0 && c.now().Sub(e.at) < what.OlderThan {
			continue
		}
		if !pretend {
			if err := os.Remove(e.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return out, err
			}
		}
		out.Bytes += e.size
		if e.download {
			out.Downloads++
		} else {
			out.Indexes++
		}
	}
	return out, nil
}
