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
// which is what one subscriber has. Only who is wrong learns of it: the right credentials are always let through, or
// strangers could keep out whoever has them by being wrong from the same address, and they cannot be guessed at any
// rate.
type Failures struct {
	now  func() time.Time
	said string // to whom was wrong too often
	each int    // from one address
	all  int    // from all of them; 0 for any number

	mu    sync.Mutex
	began time.Time
	total int
	by    map[netip.Addr]int
}

// NewFailures makes Failures that say this to whom was wrong too often.
func NewFailures(now func() time.Time, each, all int, said string) *Failures {
	return &Failures{now: now, said: said, each: each, all: all, by: map[netip.Addr]int{}}
}

// Count counts a wrong credential. It is limit_reached if there were too many, else err.
func (f *Failures) Count(from netip.Addr, err error) error {
	from = Subscriber(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Sub(f.began) >= failureWindow || now.Before(f.began) {
		f.began, f.total = now, 0
		clear(f.by)
	}
	if f.by[from] >= f.each || f.all > 0 && f.total >= f.all {
		e := fault.New(fault.LimitReached, "%s", f.said)
		e.RetryAfter = f.began.Add(failureWindow).Sub(now)
		return e
	}
	f.total++
	if _, known := f.by[from]; known || len(f.by) < failuresKept {
		f.by[from]++
	}
	return err
}

// Subscriber is the address that stands for whoever has it.
func Subscriber(from netip.Addr) netip.Addr {
	if network, err := from.Prefix(64); from.Is6() && err == nil {
		return network.Addr()
	}
	return from
}
