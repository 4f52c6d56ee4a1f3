package health

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// Bounds on the cost of asking the providers: they are asked concurrently, each within pingBound, and at most once per
// pingAge. Anybody may ask us, so many questions must not become many requests.
const (
	pingBound = 2 * time.Second
	pingAge   = 30 * time.Second
)

// The values of ProviderState.State.
const (
	stateAnswers  = "ok"
	stateDisabled = "disabled"
	stateDown     = "down"
)

// ProviderState says whether a provider serves us. Why not stays in the log, but for the code.
type ProviderState struct {
	Name  string     `json:"name"`
	State string     `json:"state" enum:"ok,disabled,down"`
	Code  fault.Code `json:"code,omitempty" doc:"What a call would be answered with, for one that is down"`
	asked bool
}

// part returns the finding about the provider's answer; nothing if it was not asked.
func (p ProviderState) part() []doctor.Finding {
	switch {
	case p.State == stateDown:
		return []doctor.Finding{doctor.ProviderDown(p.Name, p.Code,
			"its changes are shown as they were seen last; the log says why")}
	case p.asked:
		return []doctor.Finding{doctor.ProviderUp(p.Name)}
	}
	return nil
}

// Providers returns the providers' last answers, or new ones if those are too old.
func (c *Checker) Providers(ctx context.Context) ([]ProviderState, error) {
	done, err := c.pinging.Wait(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	c.mu.Lock()
	fresh, states := within(c.env.Now(), c.pingedAt, pingAge), c.providers
	c.mu.Unlock()
	if fresh {
		return states, nil
	}
	states = c.pingProviders(context.WithoutCancel(ctx)) // the answer is for those who come next, too
	c.mu.Lock()
	defer c.mu.Unlock()
	c.providers, c.pingedAt = states, c.env.Now()
	c.judge()
	return states, nil
}

// pingProviders asks all that are enabled at once.
func (c *Checker) pingProviders(ctx context.Context) []ProviderState {
	ctx, cancel := context.WithTimeout(ctx, pingBound)
	defer cancel()
	entries := c.registry.Entries()
	out := make([]ProviderState, len(entries))
	var wg sync.WaitGroup
	for i, entry := range entries {
		out[i] = ProviderState{Name: entry.Name, State: stateDisabled}
		if entry.Provider != nil {
			wg.Go(func() { out[i] = c.pingProvider(ctx, entry) })
		}
	}
	wg.Wait()
	return out
}

func (c *Checker) pingProvider(ctx context.Context, entry gitprovider.Registration) ProviderState {
	state := ProviderState{Name: entry.Name, State: stateAnswers}
	pinger, can := entry.Provider.(gitprovider.Pinger)
	if !can {
		return state
	}
	state.asked = true
	if err := pinger.Ping(ctx); err != nil {
		e := fault.From(err)
		state.State, state.Code = stateDown, e.Code
		c.env.Log.Warn("a provider does not serve us", "provider", entry.Name, "code", e.Code, "error",
			c.env.Redact(handler.Cause(e)))
	}
	return state
}
