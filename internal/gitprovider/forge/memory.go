package forge

import (
	"container/list"
	"sync"
)

// Memory is a cache that forgets what was not used for longest when its contents outweigh the limit. It is safe for
// concurrent use. Values are shared: nobody may change one.
type Memory[K comparable, V any] struct {
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

// NewMemory makes a Memory. Without a weight the limit counts values.
func NewMemory[K comparable, V any](limit int, weight func(V) int) *Memory[K, V] {
	if weight == nil {
		weight = func(V) int { return 1 }
	}
	return &Memory[K, V]{limit: limit, weight: weight, order: list.New(), byKey: map[K]*list.Element{}}
}

// Get gives the value of a key.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, found := m.byKey[key]
	if !found {
		var none V
		return none, false
	}
	m.order.MoveToFront(element)
	return element.Value.(*remembered[K, V]).value, true
}

// Take gives the value of a key and forgets it.
func (m *Memory[K, V]) Take(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, found := m.byKey[key]
	if !found {
		var none V
		return none, false
	}
	m.drop(element)
	return element.Value.(*remembered[K, V]).value, true
}

// Put keeps a value. One that alone outweighs the limit is not kept.
func (m *Memory[K, V]) Put(key K, value V) {
	m.Update(key, func(V) V { return value })
}

// Update replaces a value by what change makes of it, or of the zero value if there is none, while nobody else does.
func (m *Memory[K, V]) Update(key K, change func(V) V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var value V
	if element, found := m.byKey[key]; found {
		value = element.Value.(*remembered[K, V]).value
		m.drop(element)
	}
	value = change(value)
	if m.weight(value) > m.limit {
		return
	}
	m.byKey[key] = m.order.PushFront(&remembered[K, V]{key, value})
	m.total += m.weight(value)
	for m.total > m.limit {
		m.drop(m.order.Back())
	}
}

func (m *Memory[K, V]) drop(element *list.Element) {
	entry := m.order.Remove(element).(*remembered[K, V])
	delete(m.byKey, entry.key)
	m.total -= m.weight(entry.value)
}
