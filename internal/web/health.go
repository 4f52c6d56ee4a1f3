package web

import (
	"context"
	"slices"
	"time"
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
