package forge

import (
	"container/list"
	"sync"
)

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
