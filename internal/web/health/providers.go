package health

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// What asking the providers costs at most: they are asked side by side, each gets pingBound, and nobody has them asked
// again before pingAge is over. Anybody may ask us, so many questions must not become many requests.
const (
	pingBound = 2 * time.Second
	pingAge   = 30 * time.Second
)

// ProviderState says whether a provider serves us. Why not stays in the log, but for the code.
type ProviderState struct {
	Name  string     `json:"name"`
	State string     `json:"state" enum:"ok,disabled,down"`
	Code  fault.Code `json:"code,omitempty" doc:"What a call would be answered with, for one that is down"`
}

// providersSaid is what the providers said last.
type providersSaid struct {
	states []ProviderState
	at     time.Time
}

// Providers is what the providers said last, or say now if that was long ago.
func (c *Checker) Providers(ctx context.Context) ([]ProviderState, error) {
	done, err := c.asking.Wait(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	now := c.env.Now()
	if said := &c.providers; said.at.IsZero() || now.Before(said.at) || now.Sub(said.at) >= pingAge {
		said.states = c.pingProviders(context.WithoutCancel(ctx)) // the answer is for those who come next, too
		said.at = c.env.Now()
		c.seen.note(said.states)
	}
	return c.providers.states, nil
}

// pingProviders asks all that are enabled at once.
func (c *Checker) pingProviders(ctx context.Context) []ProviderState {
	ctx, cancel := context.WithTimeout(ctx, pingBound)
	defer cancel()
	entries := c.registry.Entries()
	out := make([]ProviderState, len(entries))
	var wg sync.WaitGroup
	for i, entry := range entries {
		out[i] = ProviderState{Name: entry.Name, State: "disabled"}
		if entry.Provider != nil {
			wg.Go(func() { out[i] = c.pingProvider(ctx, entry) })
		}
	}
	wg.Wait()
	return out
}

func (c *Checker) pingProvider(ctx context.Context, entry gitprovider.Registration) ProviderState {
	state := ProviderState{Name: entry.Name, State: "ok"}
	pinger, can := entry.Provider.(gitprovider.Pinger)
	if !can {
		return state
	}
	if err := pinger.Ping(ctx); err != nil {
		e := fault.From(err)
		state.State, state.Code = "down", e.Code
		c.env.Log.Warn("a provider does not serve us", "provider", entry.Name, "code", e.Code, "error",
			c.env.Redact(handler.Cause(e)))
	}
	return state
}
