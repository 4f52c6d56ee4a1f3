package github

import (
	"container/list"
	"sync"
)

// lru is a cache that forgets what was not used for longest when its contents outweigh the limit. It is safe for
// concurrent use. Values are shared: nobody may change one.
type lru[K comparable, V any] struct {
	mu     sync.Mutex
	limit  int
	weight func(V) int
	total  int
	order  *list.List // of *cached[K, V], the last used first
	byKey  map[K]*list.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int, weight func(V) int) *lru[K, V] {
	return &lru[K, V]{limit: limit, weight: weight, order: list.New(), byKey: map[K]*list.Element{}}
}

func (c *lru[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.byKey[key]
	if !found {
		var none V
		return none, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*cached[K, V]).value, true
}

// put keeps a value. One that alone outweighs the limit is not kept.
func (c *lru[K, V]) put(key K, value V) {
	c.update(key, func(V) V { return value })
}

// update replaces a value by what change makes of it, or of the zero value if there is none, while nobody else does.
func (c *lru[K, V]) update(key K, change func(V) V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var value V
	if element, found := c.byKey[key]; found {
		value = element.Value.(*cached[K, V]).value
		c.drop(element)
	}
	value = change(value)
	if c.weight(value) > c.limit {
		return
	}
	c.byKey[key] = c.order.PushFront(&cached[K, V]{key, value})
	c.total += c.weight(value)
	for c.total > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *lru[K, V]) drop(element *list.Element) {
	entry := c.order.Remove(element).(*cached[K, V])
	delete(c.byKey, entry.key)
	c.total -= c.weight(entry.value)
}
