package transport

import (
	"container/list"
	"net/http"
	"strings"
	"sync"
)

// What the cache holds at most: entries, and bytes of their bodies.
const (
	cacheEntries = 256
	cacheBytes   = 8 << 20
)

// cache keeps answers that carry an ETag, the least recently used go first. It never answers by itself: the server is
// asked each time whether the answer still holds. GitHub does not count a "304 Not Modified" against the limit (REST
// best practices, conditional requests). Since the server is asked with the token of the request itself, nobody sees what
// only another token is shown.
type cache struct {
	mu         sync.Mutex
	maxEntries int
	maxBytes   int
	bytes      int
	order      *list.List // of *entry, the most recently used in front
	byKey      map[string]*list.Element
}

// entry is an answer that can be given again. It does not change once it is made.
type entry struct {
	key    string
	etag   string
	header http.Header
	body   []byte
}

func newCache(maxEntries, maxBytes int) *cache {
	return &cache{maxEntries: maxEntries, maxBytes: maxBytes, order: list.New(), byKey: map[string]*list.Element{}}
}

// cacheKey is "" for a request whose answer is not kept. A request with conditions or a range of its own gets what it
// asked for.
func cacheKey(c *call) string {
	if !c.own || c.req.Method != http.MethodGet {
		return ""
	}
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "Range"} {
		if c.req.Header.Get(name) != "" {
			return ""
		}
	}
	return c.req.URL.String() + "\n" + strings.Join(c.req.Header.Values("Accept"), ",")
}

// find returns the answer kept for the request, or nil.
func (c *cache) find(of *call) *entry {
	key := cacheKey(of)
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(*entry)
}

// keep stores a "200 OK" if it has an ETag, may be stored and takes no more than a quarter of the room.
func (c *cache) keep(of *call, resp *http.Response, body []byte) {
	e := &entry{key: cacheKey(of), etag: resp.Header.Get("Etag"), header: resp.Header.Clone(), body: body}
	private := strings.Contains(strings.ToLower(resp.Header.Get("Cache-Control")), "no-store")
	if e.key == "" || e.etag == "" || private || len(body) > c.maxBytes/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.byKey[e.key]; ok {
		c.drop(old)
	}
	c.byKey[e.key] = c.order.PushFront(e)
	c.bytes += len(e.body)
	for c.order.Len() > c.maxEntries || c.bytes > c.maxBytes {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(at *list.Element) {
	e := c.order.Remove(at).(*entry)
	delete(c.byKey, e.key)
	c.bytes -= len(e.body)
}

// revive makes the answer that confirmed, a 304, stands for: the stored one with the fields that the 304 brings anew
// (RFC 9111, section 4.3.4), the rate limit's among them.
func (e *entry) revive(confirmed *http.Response) (*http.Response, []byte) {
	resp := *confirmed
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header = e.header.Clone()
	for name, values := range confirmed.Header {
		if !strings.HasPrefix(name, "Content-") && name != "Transfer-Encoding" {
			resp.Header[name] = values
		}
	}
	return &resp, e.body
}
