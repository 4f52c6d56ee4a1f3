package health

import (
	"context"
	"slices"
	"sync"
	"time"
)

// seenForges is what the providers said last, for those who do not wait for them.
type seenForges struct {
	mu      sync.Mutex
	down    []ProviderState
	version int64 // changes whenever down does
	asked   time.Time
	asking  bool
}

// note takes over what the providers said.
func (s *seenForges) note(states []ProviderState) {
	down := slices.DeleteFunc(slices.Clone(states), func(p ProviderState) bool { return p.State != "down" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(down, s.down) {
		s.down, s.version = down, s.version+1
	}
}

// Down are the providers that did not serve us when they were asked last. It waits for none.
func (c *Checker) Down() []ProviderState {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	return c.seen.down
}

// DownVersion is a number that changes whenever Down does. It waits for no provider, but has them asked meanwhile if
// that is long ago, so that they are asked while somebody looks at pages.
func (c *Checker) DownVersion(context.Context) (int64, error) {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	if now := c.env.Now(); !c.seen.asking && (now.Before(c.seen.asked) || now.Sub(c.seen.asked) >= pingAge) {
		c.seen.asking, c.seen.asked = true, now
		go c.askMeanwhile()
	}
	return c.seen.version, nil
}

// askMeanwhile asks the providers for nobody in particular; that takes pingBound at most.
func (c *Checker) askMeanwhile() {
	defer func() {
		c.seen.mu.Lock()
		defer c.seen.mu.Unlock()
		c.seen.asking = false
	}()
	if _, err := c.Providers(context.Background()); err != nil {
		c.env.Log.Warn("the providers were not asked", "error", c.env.Redact(err.Error()))
	}
}
