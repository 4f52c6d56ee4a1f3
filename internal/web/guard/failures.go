package guard

import (
	"net/netip"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// failureWindow is the time over which wrong credentials are counted, and failuresKept how many addresses are
// remembered.
const (
	failureWindow = time.Minute
	failuresKept  = 1000
)

// Failures counts wrong credentials by address, in windows of a fixed length. An address of IPv6 stands for its /64,
// the network of one subscriber. Only wrong credentials are refused: right ones are always accepted. Otherwise
// strangers could lock out their holder by sending wrong ones from the same address. Credentials are too long to be
// guessed at any rate of attempts.
type Failures struct {
	now  func() time.Time
	said string // to callers with too many failures
	each int    // from one address
	all  int    // from all of them; 0 for any number

	mu    sync.Mutex
	began time.Time
	total int
	by    map[netip.Addr]int
}

// NewFailures makes Failures whose refusals say this, and from where.
func NewFailures(now func() time.Time, each, all int, said string) *Failures {
	return &Failures{now: now, said: said, each: each, all: all, by: map[netip.Addr]int{}}
}

// Count counts a wrong credential. It is limit_reached if too many came from the address, or from all, else err.
func (f *Failures) Count(from netip.Addr, err error) error { return f.count(from, err, false) }

// CountFairly also counts attempts that may be right: once too many came from all addresses together, only addresses
// that were already counted in this window have to wait. Strangers elsewhere lock no one out.
func (f *Failures) CountFairly(from netip.Addr) error { return f.count(from, nil, true) }

func (f *Failures) count(from netip.Addr, err error, fairly bool) error {
	from = Subscriber(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roll()
	_, known := f.by[from]
	first := fairly && !known && len(f.by) < failuresKept
	switch {
	case f.by[from] >= f.each:
		return f.wait("came from this address")
	case f.all > 0 && f.total >= f.all && !first:
		return f.wait("come from many addresses")
	}
	f.add(from)
	return err
}

// Full returns limit_reached if too many wrong credentials came from an address already. It is called before work that
// only callers with right credentials may cause.
func (f *Failures) Full(from netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.roll(); f.by[Subscriber(from)] >= f.each {
		return f.wait("came from this address")
	}
	return nil
}

// Room takes a place among those that both bounds leave; ok is false if there is none.
func (f *Failures) Room(from netip.Addr) (ok bool) {
	from = Subscriber(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.roll(); f.by[from] >= f.each || f.all > 0 && f.total >= f.all {
		return false
	}
	f.add(from)
	return true
}

// roll begins a new window if the last one is over.
func (f *Failures) roll() {
	if now := f.now(); now.Sub(f.began) >= failureWindow || now.Before(f.began) {
		f.began, f.total = now, 0
		clear(f.by)
	}
}

func (f *Failures) add(from netip.Addr) {
	f.total++
	if _, known := f.by[from]; known || len(f.by) < failuresKept {
		f.by[from]++
	}
}

func (f *Failures) wait(where string) error {
	e := fault.New(fault.LimitReached, "%s %s; wait a minute", f.said, where)
	e.RetryAfter = f.began.Add(failureWindow).Sub(f.now())
	return e
}

// Subscriber returns the address that stands for all addresses of its subscriber.
func Subscriber(from netip.Addr) netip.Addr {
	if network, err := from.Prefix(64); from.Is6() && err == nil {
		return network.Addr()
	}
	return from
}
