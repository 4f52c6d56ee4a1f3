package api

import (
	"net/netip"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/guard"
)

// Bounds of deliveries whose bodies are in memory at the same time, in all and from one address, and of wrong
// signatures from one address a minute.
const (
	maxHooksAtOnce = 32
	maxHooksEach   = 8
	wrongHooksEach = 20
)

// hookPlaces are the places of deliveries that are being read.
type hookPlaces struct {
	mu  sync.Mutex
	all int
	by  map[netip.Addr]int
}

// take takes a place; limit_reached if there is none.
func (p *hookPlaces) take(from netip.Addr) (leave func(), err error) {
	from = guard.Subscriber(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxHooksAtOnce || p.by[from] >= maxHooksEach {
		e := fault.New(fault.LimitReached,
			"too many deliveries arrive at the same time; the poll sees what this one is about")
		e.RetryAfter = time.Second
		return nil, e
	}
	p.all++
	p.by[from]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.by[from]--; p.by[from] == 0 {
			delete(p.by, from)
		}
	}, nil
}
