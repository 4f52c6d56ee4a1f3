package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// What asking the providers costs at most: they are asked side by side, each gets pingBound, and nobody has them asked again
// before pingAge is over. Anybody may ask us, so many questions must not become many requests.
const (
	pingBound = 2 * time.Second
	pingAge   = 30 * time.Second
)

// Probe is the answer to a probe.
type Probe struct {
	Status    string          `json:"status" enum:"ok"`
	Providers []ProviderState `json:"providers,omitempty" doc:"Only if they were asked about by a caller who may read; may be 30 seconds old"`
}

// ProviderState says whether a provider serves us. Why not stays in the log, but for the code.
type ProviderState struct {
	Name  string     `json:"name"`
	State string     `json:"state" enum:"ok,disabled,down"`
	Code  fault.Code `json:"code,omitempty" doc:"What a call would be answered with, for one that is down"`
}

// pingMemo is what the providers said last; only who holds the place may look at it.
type pingMemo struct {
	place chan struct{}
	last  []ProviderState
	at    time.Time
}

// alive says that the process answers, and nothing else.
func (s *Server) alive(*call) (answer, error) {
	return answer{value: Probe{Status: "ok"}, volatile: true}, nil
}

type readyParams struct {
	Providers string `query:"providers" enum:"1" doc:"1: also that every enabled provider answers us, and that there is one"`
}

// ready says whether a request could be served. The reason stays in the log: anybody may ask. A provider that is down makes
// it 503 only for who asks about providers, so that nobody restarts a server because a forge is away.
func (s *Server) ready(c *call) (answer, error) {
	var q readyParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
	defer cancel()
	if err := s.Records.Ping(ctx); err != nil {
		s.Log.Error("not ready", "request_id", c.id, "error", s.Redact(cause(fault.From(err))))
		return answer{}, notReady(fault.New(fault.Internal,
			"the records cannot be read or written; the log has the details under this request id"))
	}
	probe := Probe{Status: "ok"}
	if q.Providers == "" {
		return answer{value: probe, volatile: true}, nil
	}
	known, err := s.mayRead(c)
	if err != nil {
		return answer{}, err
	}
	states, err := s.providerStates(c.Context())
	if err != nil {
		return answer{}, err
	}
	err = providersReady(states)
	if !known {
		return answer{value: probe, volatile: true}, anonymized(err)
	}
	probe.Providers = states
	return answer{value: probe, volatile: true}, err
}

// mayRead reports whether the caller may read: the scopes are asked for what a stranger gets a shorter answer to. Credentials
// that are no good are an error, none at all are not.
func (s *Server) mayRead(c *call) (bool, error) {
	who, err := s.identify(c)
	shows := len(c.Header.Values("Authorization")) > 0 || len(c.CookiesNamed(cookieName)) > 0 || len(s.proxyUsers(c.Request)) > 0
	if err != nil && !shows && fault.CodeOf(err) == fault.Unauthenticated {
		return false, nil
	}
	c.who = who
	return err == nil && who.Scopes.Has(access.Read), err
}

// anonymized is a fault of providersReady for a stranger, who learns neither which provider is down nor how many there are.
func anonymized(err error) error {
	if err == nil {
		return nil
	}
	return notReady(fault.New(fault.UpstreamError, "not every provider serves us; whoever may read is told which"))
}

// providersReady is the fault that names each enabled provider that is down, or nil.
func providersReady(states []ProviderState) error {
	enabled := slices.ContainsFunc(states, func(p ProviderState) bool { return p.State != "disabled" })
	if !enabled {
		return notReady(fault.New(fault.ProviderDisabled, "no provider is enabled"))
	}
	var said []string
	var down []fault.Violation
	for _, p := range states {
		said = append(said, p.Name+" is "+p.State)
		if p.State == "down" {
			down = append(down, fault.Violation{
				Code: p.Code, Rule: p.Name, Message: fmt.Sprintf("the provider %s does not serve us; the log says why", p.Name),
			})
		}
	}
	if len(down) == 0 {
		return nil
	}
	e := fault.New(down[0].Code, "%s", strings.Join(said, ", "))
	e.Violations = down
	return notReady(e)
}

func notReady(e *fault.Error) error {
	return &statusError{status: http.StatusServiceUnavailable, err: e}
}

// providerStates is what the providers said last, or say now if that was long ago.
func (s *Server) providerStates(ctx context.Context) ([]ProviderState, error) {
	done, err := enter(ctx, s.pings.place)
	if err != nil {
		return nil, err
	}
	defer done()
	now := s.Now()
	if m := &s.pings; m.at.IsZero() || now.Before(m.at) || now.Sub(m.at) >= pingAge {
		m.last = s.pingProviders(context.WithoutCancel(ctx)) // the answer is for those who come next, too
		m.at = s.Now()
	}
	return s.pings.last, nil
}

// pingProviders asks all that are enabled at once.
func (s *Server) pingProviders(ctx context.Context) []ProviderState {
	ctx, cancel := context.WithTimeout(ctx, pingBound)
	defer cancel()
	entries := s.Registry.Entries()
	out := make([]ProviderState, len(entries))
	var wg sync.WaitGroup
	for i, entry := range entries {
		out[i] = ProviderState{Name: entry.Name, State: "disabled"}
		if entry.Provider != nil {
			wg.Go(func() { out[i] = s.pingProvider(ctx, entry) })
		}
	}
	wg.Wait()
	return out
}

func (s *Server) pingProvider(ctx context.Context, entry gitprovider.Registration) ProviderState {
	state := ProviderState{Name: entry.Name, State: "ok"}
	pinger, can := entry.Provider.(gitprovider.Pinger)
	if !can {
		return state
	}
	if err := pinger.Ping(ctx); err != nil {
		e := fault.From(err)
		state.State, state.Code = "down", e.Code
		s.Log.Warn("a provider does not serve us", "provider", entry.Name, "code", e.Code, "error", s.Redact(cause(e)))
	}
	return state
}
