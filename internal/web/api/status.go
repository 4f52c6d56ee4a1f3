package api

import (
	"context"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
)

// status says what holds on this server: its providers, its policy, what doctor says, and who the caller is.
type status struct {
	kernel   func() *operation.Kernel
	settings handler.Settings
	registry *gitprovider.Registry
	policy   func() (policy.Policy, error)
	health   *health.Checker
	env      handler.Env
}

func (h *status) operations() []operation.Operation {
	check := reads("check_policy", "Ask whether a tier may change paths, and by which rule", operation.Route{
		Path: "/policy/check", ID: "checkPolicy", MaxBody: 256 << 10, TooLarge: "ask about fewer paths at once",
	})
	check.Route.Method = http.MethodPost
	return []operation.Operation{
		read(h.kernel, reads("list_providers", "List the providers; none is contacted", operation.Route{
			Path: "/providers", ID: "listProviders",
		}), h.providers),
		read(h.kernel, reads("get_policy", "Read the effective rules", operation.Route{Path: "/policy", ID: "getPolicy"}),
			h.showPolicy),
		read(h.kernel, check, h.checkPolicy),
		read(h.kernel, reads("get_health", "How the server is: each part, since when, what it stops and what to do",
			operation.Route{Path: "/health", ID: "getHealth"}), h.diagnosis),
	}
}

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
func (h *status) providers(context.Context, operation.Call, struct{}) (ProviderList, error) {
	list := []ProviderEntry{}
	for _, e := range h.registry.Entries() {
		list = append(list, ProviderEntry{
			Name: e.Name, Enabled: e.Provider != nil, Hosts: append([]string{}, e.Hosts...), Disabled: h.env.Redact(e.Disabled),
		})
	}
	return ProviderList{list}, nil
}

// Health describes the state of the server: the findings of `claudeops doctor --online`, and what this server has seen.
type Health struct {
	Version  string           `json:"version"`
	CanOpen  bool             `json:"can_open" doc:"Nothing here would stop a pull request"`
	Findings []doctor.Finding `json:"findings"`
	At       time.Time        `json:"at" doc:"When it was looked at; an answer may be 10 seconds old"`
}

// Changes implements operation.Changing.
func (Health) Changes() bool { return true }

func (h *status) diagnosis(ctx context.Context, _ operation.Call, _ struct{}) (Health, error) {
	now, err := h.health.Check(ctx)
	return healthOf(h.settings.Version, now), err
}

func healthOf(version string, now health.Health) Health {
	return Health{Version: version, CanOpen: now.CanOpen(), Findings: now.Parts, At: now.At}
}
