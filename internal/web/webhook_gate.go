package web

import (
	"net/netip"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// Bounds of deliveries whose bodies are in memory at the same time, in all and from one address, and of wrong signatures from
// one address a minute.
const (
	maxHooksAtOnce = 32
	maxHooksEach   = 8
	wrongHooksEach = 20
)

// hookGate keeps strangers who send deliveries from costing much.
type hookGate struct {
	places *hookPlaces
	wrong  *failures
}

func newHookGate(now func() time.Time) hookGate {
	return hookGate{
		places: &hookPlaces{by: map[netip.Addr]int{}},
		wrong: newFailures(now, wrongHooksEach, 0,
			"too many deliveries with a wrong signature came from this address; correct the secret and wait a minute"),
	}
}

// hookPlaces are the places of deliveries that are being read.
type hookPlaces struct {
	mu  sync.Mutex
	all int
	by  map[netip.Addr]int
}

// take takes a place; limit_reached if there is none.
func (p *hookPlaces) take(from netip.Addr) (leave func(), err error) {
	from = subscriber(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxHooksAtOnce || p.by[from] >= maxHooksEach {
		e := fault.New(fault.LimitReached, "too many deliveries arrive at the same time; the poll sees what this one is about")
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
