package stdio

import (
	"sync"
	"time"
)

const (
	unwindTime = time.Second // for handlers to return after their contexts were cancelled
	flushTime  = time.Second // for the last answers to be written
)

// ending bounds the end of a connection. When a limit set by within is reached, in this order: cut is called, which
// cancels all calls; after unwindTime abandon is closed and handlers that still run are left behind; after flushTime
// gone is closed and all waiting ends.
type ending struct {
	cut     func()
	abandon chan struct{}
	gone    chan struct{}

	mu      sync.Mutex
	once    sync.Once
	timers  []*time.Timer
	stopped bool
}

func newEnding(cut func()) *ending {
	return &ending{cut: cut, abandon: make(chan struct{}), gone: make(chan struct{})}
}

// within sets a limit. The earliest of several limits counts.
func (e *ending) within(limit time.Duration) {
	e.after(limit, func() {
		e.once.Do(func() {
			e.cut()
			e.after(unwindTime, func() {
				close(e.abandon)
				e.after(flushTime, func() { close(e.gone) })
			})
		})
	})
}

func (e *ending) after(d time.Duration, do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.timers = append(e.timers, time.AfterFunc(d, do))
	}
}

// stop calls the limits off.
func (e *ending) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, t := range e.timers {
		t.Stop()
	}
}
