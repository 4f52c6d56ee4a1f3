package store

import (
	"sync"

	"github.com/claudeops/claudeops/internal/fault"
)

// holdings are the proposals that this store works on, and the name under which it holds each.
//
// When the store could not record that it has given one up, its reservation would count as being worked on for as long
// as the process lives. So the presence under that name ends as soon as nothing else is held: the next reservation is
// made under a new name, and whoever meets the old one may settle it.
type holdings struct {
	presence presence

	mu       sync.Mutex
	names    map[string]string   // by proposal id; kept for those that were not finished, since others may take them over
	active   map[string]struct{} // ids that are worked on
	arriving int                 // calls that may add one
	lost     bool                // whether the end of one went unrecorded
}

func newHoldings(p presence) *holdings {
	return &holdings{presence: p, names: map[string]string{}, active: map[string]struct{}{}}
}

// arrive keeps the presence until the function that it returns is called.
func (h *holdings) arrive() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arriving++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.arriving--
		h.partIfLost()
	}
}

func (h *holdings) add(id, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[id] = name
	h.active[id] = struct{}{}
}

// name is the name under which the proposal is or was held, or "".
func (h *holdings) name(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[id]
}

// finished is told that a proposal has ended for good.
func (h *holdings) finished(id string) {
	h.end(id, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.names, id)
}

// end is told of the last step that this store takes with a proposal, and how recording it went. A conflict is as good as
// success: somebody else has settled it.
func (h *holdings) end(id string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.active, id)
	h.unsure(err)
	h.partIfLost()
}

// doubt is told of a reservation that may have been recorded although the call failed.
func (h *holdings) doubt(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsure(err)
}

func (h *holdings) unsure(err error) {
	h.lost = h.lost || err != nil && fault.CodeOf(err) != fault.Conflict
}

// partIfLost ends the presence if that is due. Where that fails, the end of the process does it.
func (h *holdings) partIfLost() {
	if h.lost && h.arriving == 0 && len(h.active) == 0 {
		h.lost = false
		_ = h.presence.leave()
	}
}
