package web

import (
	"net/netip"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// Bounds of sign-in: attempts from one address and from all of them within a window. An address of IPv6 stands for its
// /64, which is what one subscriber has.
const (
	signInWindow = time.Minute
	signInsEach  = 10
	signInsAll   = 200
)

// limiter counts attempts in windows of a fixed length. It holds at most signInsAll addresses.
type limiter struct {
	now   func() time.Time
	mu    sync.Mutex
	began time.Time
	all   int
	each  map[netip.Addr]int
}

func newLimiter(now func() time.Time) *limiter { return &limiter{now: now, each: map[netip.Addr]int{}} }

// take counts an attempt; limit_reached if there were too many.
func (l *limiter) take(from netip.Addr) error {
	from = subscriber(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Sub(l.began) >= signInWindow || now.Before(l.began) {
		l.began, l.all = now, 0
		clear(l.each)
	}
	if l.all >= signInsAll || l.each[from] >= signInsEach {
		e := fault.New(fault.LimitReached, "too many attempts to sign in; wait a minute")
		e.RetryAfter = l.began.Add(signInWindow).Sub(now)
		return e
	}
	l.all++
	l.each[from]++
	return nil
}

// subscriber is the address that stands for whoever has it.
func subscriber(from netip.Addr) netip.Addr {
	if network, err := from.Prefix(64); from.Is6() && err == nil {
		return network.Addr()
	}
	return from
}
