package api

import (
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/doctor"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
)

// status says what holds on this server: its providers, its policy, what doctor says, and who the caller is.
type status struct {
	settings handler.Settings
	registry *gitprovider.Registry
	policy   func() (policy.Policy, error)
	health   *health.Checker
	env      handler.Env
}

func (h *status) routes() []handler.Route {
	return []handler.Route{
		read(prefix+"/providers", h.providers, handler.Doc{
			ID: "listProviders", Summary: "List the providers; none is contacted", Answers: handler.OK(ProviderList{}),
		}),
		read(prefix+"/policy", h.showPolicy, handler.Doc{
			ID: "getPolicy", Summary: "Read the effective rules", Answers: handler.OK(PolicyAnswer{}),
		}),
		{
			Method: "POST", Pattern: prefix + "/policy/check", Scope: access.Read, Handle: h.checkPolicy,
			Body: &handler.BodyLimit{Bytes: 256 << 10, Advice: "ask about fewer paths at once"},
			Doc: handler.Doc{
				ID: "checkPolicy", Summary: "Ask whether a tier may change paths, and by which rule", Body: CheckRequest{}, Answers: handler.OK(policy.CheckAnswer{}),
			},
		},
		read(prefix+"/health", h.diagnosis, handler.Doc{
			ID: "getHealth", Summary: "What would stop a pull request", Answers: handler.OK(Health{}),
		}),
		read(prefix+"/me", h.whoAmI, handler.Doc{
			ID: "whoAmI", Summary: "Who the caller is, and what it may", Answers: handler.OK(guard.Identity{}),
		}),
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
func (h *status) providers(*handler.Request) (handler.Response, error) {
	list := []ProviderEntry{}
	for _, e := range h.registry.Entries() {
		list = append(list, ProviderEntry{
			Name: e.Name, Enabled: e.Provider != nil, Hosts: append([]string{}, e.Hosts...), Disabled: h.env.Redact(e.Disabled),
		})
	}
	return handler.Response{Value: ProviderList{list}}, nil
}

// Health is what `claudeops doctor` says.
type Health struct {
	Version  string           `json:"version"`
	CanOpen  bool             `json:"can_open" doc:"Nothing here would stop a pull request"`
	Findings []doctor.Finding `json:"findings"`
	At       time.Time        `json:"at" doc:"When it was looked at; an answer may be 10 seconds old"`
}

func (h *status) diagnosis(req *handler.Request) (handler.Response, error) {
	d, err := h.health.Diagnose(req.Context())
	return handler.Response{
		Value: Health{Version: h.settings.Version, CanOpen: d.CanOpen(), Findings: d.Findings, At: d.At}, Volatile: true,
	}, err
}

func (h *status) whoAmI(req *handler.Request) (handler.Response, error) {
	return handler.Response{Value: guard.IdentityOf(req.Principal)}, nil
}
