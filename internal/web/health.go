package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// ProviderEntry is one provider as configuration made it.
type ProviderEntry struct {
	Name     string   `json:"name"`
	Enabled  bool     `json:"enabled"`
	Hosts    []string `json:"hosts"`
	Disabled string   `json:"disabled,omitempty" doc:"Why it is disabled, naming the variable"`
}

// ProviderList lists the providers.
type ProviderList struct {
	Providers []ProviderEntry `json:"providers"`
}

// providers asks no provider anything.
func (s *Server) providers(*call) (answer, error) {
	return answer{value: ProviderList{s.listProviders()}}, nil
}

func (s *Server) listProviders() []ProviderEntry {
	list := []ProviderEntry{}
	for _, e := range s.Registry.Entries() {
		list = append(list, ProviderEntry{
			Name: e.Name, Enabled: e.Provider != nil, Hosts: append([]string{}, e.Hosts...), Disabled: s.Redact(e.Disabled),
		})
	}
	return list
}

// Health is what `claudeops doctor` says.
type Health struct {
	Version  string    `json:"version"`
	CanOpen  bool      `json:"can_open" doc:"Nothing here would stop a pull request"`
	Findings []Finding `json:"findings"`
	At       time.Time `json:"at" doc:"When it was looked at; an answer may be 10 seconds old"`
}

// healthAge is how old an answer about health may be: finding it out reads the whole record.
const healthAge = 10 * time.Second

// healthMemo is the last answer; only who holds the place in Server.heavy may look at it.
type healthMemo struct{ last Health }

func (s *Server) healthOf(c *call) (answer, error) {
	health, err := s.currentHealth(c)
	return answer{value: health, volatile: true}, err
}

func (s *Server) currentHealth(c *call) (Health, error) {
	done, err := enter(c.Context(), s.heavy)
	if err != nil {
		return Health{}, err
	}
	defer done()
	if now := s.Now(); s.health.last.At.IsZero() || now.Sub(s.health.last.At) >= healthAge {
		findings := s.Doctor(context.WithoutCancel(c.Context()))
		s.health.last = Health{
			Version: s.Version, Findings: findings, At: now.UTC(),
			CanOpen: !slices.ContainsFunc(findings, func(f Finding) bool { return f.Blocks }),
		}
	}
	return s.health.last, nil
}

// Probe is the answer to a probe.
type Probe struct {
	Status string `json:"status" enum:"ok"`
}

// alive says that the process answers, and nothing else.
func (s *Server) alive(*call) (answer, error) { return answer{value: Probe{"ok"}, volatile: true}, nil }

type readyParams struct {
	Providers string `query:"providers" enum:"1" doc:"1: also that a provider is enabled; none is contacted"`
}

// ready says whether a request could be served. The reason stays in the log: anybody may ask.
func (s *Server) ready(c *call) (answer, error) {
	var q readyParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
	defer cancel()
	if err := s.Records.Ping(ctx); err != nil {
		s.Log.Error("not ready", "request_id", c.id, "error", s.Redact(cause(fault.From(err))))
		return answer{}, notReady(fault.Internal, "the records cannot be read; the log has the details under this request id")
	}
	if q.Providers != "" && !slices.ContainsFunc(s.listProviders(), func(e ProviderEntry) bool { return e.Enabled }) {
		return answer{}, notReady(fault.ProviderDisabled, "no provider is enabled")
	}
	return answer{value: Probe{"ok"}, volatile: true}, nil
}

func notReady(code fault.Code, message string) error {
	return &statusError{status: http.StatusServiceUnavailable, err: fault.New(code, "%s", message)}
}
