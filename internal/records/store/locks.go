package store

import (
	"context"
	"sync"
)

// locks tell the processes that share a database which work is still in progress. A process that works on a proposal,
// or runs a session of an agent, holds a lock, whose name is recorded with the work. The lock ends when it is released,
// and with the process, however that ends; see docs/adr/0013-locks-not-leases.md.
type locks interface {
	// acquire takes a new lock and returns its name.
	acquire(ctx context.Context) (name string, err error)

	// release gives a lock back. Releasing one that is not held is not an error.
	release(name string)

	// ended reports which of the locks are not held any more. One that this store holds is never among them, even if the
	// database lost it: then other processes may take the work over, and this store finds a conflict.
	ended(ctx context.Context, names []string) (map[string]bool, error)

	// ready reports why nothing may be written now: what tells others that this process works was lost, and could not be
	// had again.
	ready(ctx context.Context) error

	// usable reports why the records may not be used any more.
	usable() error

	// close releases all.
	close() error
}

// heldLocks remembers under which lock this store has recorded what it works on, by the id of the proposal or session.
type heldLocks struct {
	db *database

	mu    sync.Mutex
	names map[string]string // also of work that was given up unfinished: a process that takes it over records another name
}

func newHeldLocks(d *database) *heldLocks { return &heldLocks{db: d, names: map[string]string{}} }

// take calls record with the name of a new lock. If record reports that the work is recorded under that name, the lock
// is held until release. Otherwise it is released at once, also after an error: should the work be recorded after all,
// others may settle it.
func (h *heldLocks) take(ctx context.Context, id string, record func(lock string) (recorded bool, err error)) error {
	lock, err := h.db.acquireLock(ctx)
	if err != nil {
		return err
	}
	recorded, err := record(lock)
	if err != nil || !recorded {
		h.db.releaseLock(lock)
		return err
	}
	h.release(id) // of an earlier attempt at the same
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[id] = lock
	return nil
}

// name returns the name of the lock under which this store holds or held the work, or "".
func (h *heldLocks) name(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[id]
}

// release lets others take over what was recorded under the id, and does so even if the end of the work could not be
// recorded.
func (h *heldLocks) release(id string) {
	if name := h.name(id); name != "" {
		h.db.releaseLock(name)
	}
}

// forget is release for work that has ended for good.
func (h *heldLocks) forget(id string) {
	h.release(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.names, id)
}
