package forge

import (
	"container/list"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// RepoKey returns the same key for every spelling of a repository: forges compare names without regard to letter case.
func RepoKey(repo gitprovider.RepoRef) string { return strings.ToLower(repo.String()) }

// maxPaths bounds, in bytes of paths, what Paths remembers: the files of some thousand pull requests.
const maxPaths = 4 << 20

// Paths remembers which files pull requests change. They follow from the commits that decide it, so an entry is never
// out of date.
type Paths struct {
	known *LRU[pathsKey, []string]
}

// pathsKey has the number 0 for a commit that this process has made and not opened a pull request for.
type pathsKey struct {
	repo    string
	number  int
	version string // names the commits
}

// NewPaths makes an empty memory.
func NewPaths() *Paths {
	return &Paths{NewLRU[pathsKey](maxPaths, func(paths []string) int {
		const overhead = 64
		total := overhead
		for _, path := range paths {
			total += len(path) + overhead/4
		}
		return total
	})}
}

// Get gives the files of a pull request at a version. The slice is the caller's.
func (p *Paths) Get(repo gitprovider.RepoRef, number int, version string) ([]string, bool) {
	paths, known := p.known.Get(pathsKey{RepoKey(repo), number, version})
	return slices.Clone(paths), known
}

// Put keeps the files of a pull request at a version.
func (p *Paths) Put(repo gitprovider.RepoRef, number int, version string, paths []string) {
	p.known.Put(pathsKey{RepoKey(repo), number, version}, slices.Clone(paths))
	if number > 0 {
		p.known.Put(pathsKey{RepoKey(repo), number, latest}, slices.Clone(paths))
	}
}

// latest stands for the version of a pull request that was put last.
const latest = ""

// Latest gives the files of a pull request as they were put last.
func (p *Paths) Latest(repo gitprovider.RepoRef, number int) ([]string, bool) {
	return p.Get(repo, number, latest)
}

// Committed keeps what a commit of ours changes, for the pull request that is opened of it.
func (p *Paths) Committed(req gitprovider.CommitRequest, version string) {
	paths := make([]string, 0, req.Changes.Len())
	for _, path := range req.Changes.Paths() { // sorted
		paths = append(paths, path.String())
	}
	p.Put(req.Snapshot.Repo, 0, version, paths)
}

// Appended keeps what a commit of ours adds to a pull request, whose number is not known yet.
func (p *Paths) Appended(req gitprovider.CommitRequest, commit string) {
	p.Committed(req, "+"+commit)
}

// TakeAppended gives what the commit adds, once.
func (p *Paths) TakeAppended(repo gitprovider.RepoRef, commit string) (paths []string, known bool) {
	return p.known.Take(pathsKey{RepoKey(repo), 0, "+" + commit})
}

// Opened gives the files of a pull request that was just opened of our commit, and keeps them as its files.
func (p *Paths) Opened(repo gitprovider.RepoRef, number int, version string) (paths []string, known bool) {
	paths, known = p.known.Take(pathsKey{RepoKey(repo), 0, version})
	if known {
		p.Put(repo, number, version, paths)
	}
	return slices.Clone(paths), known
}

// LRU is a cache that drops the least recently used values when their total weight exceeds the limit. It is safe for
// concurrent use. Values are shared and must not be changed.
type LRU[K comparable, V any] struct {
	mu     sync.Mutex
	limit  int
	weight func(V) int
	total  int
	order  *list.List // of *remembered[K, V], the last used first
	byKey  map[K]*list.Element
}

type remembered[K comparable, V any] struct {
	key   K
	value V
}

// NewLRU makes a LRU. Without a weight the limit counts values.
func NewLRU[K comparable, V any](limit int, weight func(V) int) *LRU[K, V] {
	if weight == nil {
		weight = func(V) int { return 1 }
	}
	return &LRU[K, V]{limit: limit, weight: weight, order: list.New(), byKey: map[K]*list.Element{}}
}

// Get gives the value of a key.
func (c *LRU[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.byKey[key]
	if !found {
		var none V
		return none, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*remembered[K, V]).value, true
}

// Take gives the value of a key and forgets it.
func (c *LRU[K, V]) Take(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.byKey[key]
	if !found {
		var none V
		return none, false
	}
	c.drop(element)
	return element.Value.(*remembered[K, V]).value, true
}

// Put keeps a value. One that alone outweighs the limit is not kept.
func (c *LRU[K, V]) Put(key K, value V) {
	c.Update(key, func(V) V { return value })
}

// Update replaces a value by the result of change, atomically. change gets the zero value if there is none.
func (c *LRU[K, V]) Update(key K, change func(V) V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var value V
	if element, found := c.byKey[key]; found {
		value = element.Value.(*remembered[K, V]).value
		c.drop(element)
	}
	value = change(value)
	if c.weight(value) > c.limit {
		return
	}
	c.byKey[key] = c.order.PushFront(&remembered[K, V]{key, value})
	c.total += c.weight(value)
	for c.total > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *LRU[K, V]) drop(element *list.Element) {
	entry := c.order.Remove(element).(*remembered[K, V])
	delete(c.byKey, entry.key)
	c.total -= c.weight(entry.value)
}
