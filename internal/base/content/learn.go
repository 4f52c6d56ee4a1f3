package content

import (
	"slices"
	"sync"
)

// ownCredentials are the credentials that a Scanner knows; they can become more and fewer while it is used.
type ownCredentials struct {
	mu     sync.RWMutex
	groups []*[]string // one for each call of add
	all    *ownSet     // of all groups; replaced, never changed
	number int64       // how often it was replaced
}

// add returns what removes the values again; it may be called more than once.
func (o *ownCredentials) add(values []string) (remove func()) {
	group := new([]string)
	*group = slices.Clone(values)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = append(o.groups, group)
	o.prepare()
	return sync.OnceFunc(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.groups = slices.DeleteFunc(o.groups, func(other *[]string) bool { return other == group })
		o.prepare()
	})
}

func (o *ownCredentials) prepare() {
	var values []string
	for _, group := range o.groups {
		values = append(values, *group...)
	}
	slices.Sort(values)
	o.all = newOwnSet(slices.Compact(values))
	o.number++
}

func (o *ownCredentials) set() *ownSet {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.all
}

// Learn adds credentials that the process came by while it runs, such as a token that a forge made for it. They are
// found and redacted from now on, until forget is called: when they are worth nothing any more.
func (s *Scanner) Learn(own ...string) (forget func()) { return s.own.add(own) }

// Redaction returns a number that grows whenever Redact begins to keep out something else.
func (s *Scanner) Redaction() int64 {
	s.own.mu.RLock()
	defer s.own.mu.RUnlock()
	return s.own.number
}
