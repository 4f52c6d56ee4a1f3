package web

import (
	"net/netip"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// hookGate keeps strangers who send deliveries from costing much.
type hookGate struct {
	reading  chan struct{} // holds a token for each body that is being read
	failures *failures
}

func newHookGate(now func() time.Time) hookGate {
	return hookGate{
		reading: make(chan struct{}, maxHooksAtOnce), failures: &failures{now: now, each: map[netip.Addr]int{}},
	}
}

// Bounds of wrong signatures within a window: from one address (see limiter for what one is), and how many addresses are
// remembered. Others are let through, so that nobody can shut out the forge from many addresses.
const (
	failureWindow = time.Minute
	failuresEach  = 20
	failuresKept  = 1000
)

// failures counts wrong signatures by address, in windows of a fixed length.
type failures struct {
	now   func() time.Time
	mu    sync.Mutex
	began time.Time
	each  map[netip.Addr]int
}

// blocked is limit_reached if too many wrong signatures came from the address.
func (f *failures) blocked(from netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.turn()
	if f.each[subscriber(from)] < failuresEach {
		return nil
	}
	e := fault.New(fault.LimitReached, "too many deliveries with a wrong signature came from this address; correct the secret and wait a minute")
	e.RetryAfter = f.began.Add(failureWindow).Sub(now)
	return e
}

// count counts a wrong signature.
func (f *failures) count(from netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn()
	at := subscriber(from)
	if _, known := f.each[at]; known || len(f.each) < failuresKept {
		f.each[at]++
	}
}

// turn begins a new window if it is time.
func (f *failures) turn() (now time.Time) {
	now = f.now()
	if now.Sub(f.began) >= failureWindow || now.Before(f.began) {
		f.began = now
		clear(f.each)
	}
	return now
}
