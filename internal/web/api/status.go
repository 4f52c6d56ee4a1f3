package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// statusRoutes says what holds on this server: its providers, its policy, what doctor says, and who the caller is.
type statusRoutes struct {
	kernel   func() *operation.Kernel
	settings httpx.Settings
	registry *gitprovider.Registry
	policy   func() (policy.Policy, error)
	health   *health.Checker
	env      httpx.Env
}

func (h *statusRoutes) operations() []operation.Operation {
	check := reads("check_policy", "Ask whether a tier may change paths, and by which rule", operation.Route{
		Path: "/policy/check", ID: "checkPolicy", MaxBody: 256 << 10, TooLarge: "ask about fewer paths at once",
	})
	check.Route.Method = http.MethodPost
	return []operation.Operation{
		defineRead(h.kernel, reads("list_providers", "List the providers; none is contacted", operation.Route{
			Path: "/providers", ID: "listProviders",
		}), h.providers),
		defineRead(h.kernel, reads("get_policy", "Read the effective rules", operation.Route{Path: "/policy",
			ID: "getPolicy"}),
			h.showPolicy),
		defineRead(h.kernel, check, h.checkPolicy),
		defineRead(h.kernel, reads("get_health", "How the server is: each part, since when, what it stops and what to do",
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
func (h *statusRoutes) providers(context.Context, operation.Call, struct{}) (ProviderList, error) {
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

func (h *statusRoutes) diagnosis(ctx context.Context, _ operation.Call, _ struct{}) (Health, error) {
	now, err := h.health.Check(ctx)
	return healthOf(h.settings.Version, now), err
}

func healthOf(version string, now health.Health) Health {
	return Health{Version: version, CanOpen: now.CanOpen(), Findings: now.Parts, At: now.At}
}

// PolicyAnswer describes the rules of this server.
type PolicyAnswer struct {
	Tier     int         `json:"tier" doc:"Of this server; a token may have a lower one"`
	DryRun   bool        `json:"dry_run"`
	ReadOnly string      `json:"read_only" doc:"Why no proposals are taken; empty if they are"`
	Policy   policy.View `json:"policy"`
}

func (h *statusRoutes) showPolicy(context.Context, operation.Call, struct{}) (PolicyAnswer, error) {
	p, err := h.policy()
	now := h.settings.Rules()
	return PolicyAnswer{Tier: int(h.settings.Tier), DryRun: now.DryRun, ReadOnly: now.ReadOnly,
		Policy: p.View()}, err
}

// CheckRequest asks the policy about paths.
type CheckRequest struct {
	Paths []string `json:"paths" required:"true" minItems:"1" maxItems:"100"`
	Tier  int      `json:"tier,omitempty" minimum:"1" maximum:"3" doc:"Tier to ask about, 1 to 3; default: the caller's. It gives nothing."`
}

func (h *statusRoutes) checkPolicy(_ context.Context, call operation.Call, in CheckRequest) (policy.CheckAnswer,
	error) {
	p, err := h.policy()
	if err != nil {
		return policy.CheckAnswer{}, err
	}
	tier := gitprovider.Tier(in.Tier)
	if tier == 0 {
		tier = min(h.settings.Tier, call.Ceiling)
	}
	return p.CheckPaths(tier, in.Paths), nil
}

// probes answers monitoring: whether the process answers, whether it could serve, and what it has counted.
type probes struct {
	records views.Attempts
	health  *health.Checker
	metrics *health.Metrics
	guard   *httpx.Guard
	version string
	env     httpx.Env
}

func (h *probes) routes() []httpx.Route {
	return []httpx.Route{
		{
			Method: "GET", Pattern: "/healthz", Handle: h.alive,
			Doc: httpx.Doc{
				ID: "alive", Summary: "The process answers", Params: aliveParams{}, Answers: httpx.OK(Probe{}),
				Description: "With detail=1, callers who may read also get the health of the server: each part, since when, what " +
					"it stops and what to do. The status stays 200, so that no probe restarts a server because a part of it is broken.",
			},
		},
		{
			Method: "GET", Pattern: "/readyz", Handle: h.serveReady,
			Doc: httpx.Doc{
				ID: "ready", Summary: "Requests could be served; 503 if not", Params: readyParams{}, Answers: httpx.OK(Probe{}),
				Description: "The records can be read. With providers=1 also: every enabled provider answers, and takes our token. A " +
					"provider that is down makes it 503 only then, so ask without it where a failing probe restarts the server. Which " +
					"one is told to callers who may read.",
			},
		},
		get(prefix+"/me", h.whoAmI, httpx.Doc{
			ID: "whoAmI", Summary: "Who the caller is, and what it may", Answers: httpx.OK(httpx.Identity{}),
		}),
		get("/metrics", h.scrape, httpx.Doc{
			ID: "metrics", Summary: "Metrics in Prometheus's text format", Answers: httpx.OK(""), ContentType: "text/plain",
		}),
	}
}

// Probe is the answer to a probe.
type Probe struct {
	Status    string                 `json:"status" enum:"ok"`
	Providers []health.ProviderState `json:"providers,omitempty" doc:"Only if they were asked about by a caller who may read; may be 30 seconds old"`
	Health    *Health                `json:"health,omitempty" doc:"Only if it was asked about by a caller who may read"`
}

type aliveParams struct {
	Detail string `json:"detail,omitempty" enum:"1" doc:"1: also how each part of the server is, for callers who may read"`
}

// alive says that the process answers and, if asked, how the server is.
func (h *probes) alive(req *httpx.Request) (httpx.Response, error) {
	var q aliveParams
	if err := httpx.DecodeQuery(req, &q); err != nil {
		return httpx.Response{}, err
	}
	probe := Probe{Status: "ok"}
	if q.Detail == "" {
		return httpx.Response{Value: probe, Volatile: true}, nil
	}
	known, err := h.guard.MayRead(req)
	if err != nil || !known {
		return httpx.Response{Value: probe, Volatile: true}, err
	}
	now, err := h.health.Check(req.Context())
	answer := healthOf(h.version, now)
	probe.Health = &answer
	return httpx.Response{Value: probe, Volatile: true}, err
}

type readyParams struct {
	Providers string `json:"providers,omitempty" enum:"1" doc:"1: also that every enabled provider answers us, and that there is one"`
}

// serveReady reports whether a request could be served. The reason is only logged: anybody may ask. A provider that is
// down causes a 503 only for callers who ask about providers, so that a server is not restarted because a forge is
// down.
func (h *probes) serveReady(req *httpx.Request) (httpx.Response, error) {
	var q readyParams
	if err := httpx.DecodeQuery(req, &q); err != nil {
		return httpx.Response{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), 5*time.Second)
	defer cancel()
	if err := h.records.Ping(ctx); err != nil {
		h.env.Log.Error("not ready", "request_id", req.ID, "error", h.env.Redact(httpx.Cause(err)))
		return httpx.Response{}, httpx.Unavailable(notReady(err))
	}
	probe := Probe{Status: "ok"}
	if q.Providers == "" {
		return httpx.Response{Value: probe, Volatile: true}, nil
	}
	known, err := h.guard.MayRead(req)
	if err != nil {
		return httpx.Response{}, err
	}
	states, err := h.health.Providers(req.Context())
	if err != nil {
		return httpx.Response{}, err
	}
	err = providersReady(states)
	if !known {
		return httpx.Response{Value: probe, Volatile: true}, anonymized(err)
	}
	probe.Providers = states
	return httpx.Response{Value: probe, Volatile: true}, err
}

// notReady says to anybody what the server waits for, if that is known, and nothing of paths and hosts.
func notReady(err error) *fault.Error {
	text := "the records cannot be read or written"
	if waitsFor := fault.From(err).WaitsFor; waitsFor != "" {
		text += "; the server waits for " + waitsFor
	}
	return fault.New(fault.Internal, "%s; the log has the details under this request id", text)
}

// anonymized returns a fault of providersReady for a stranger, who learns neither which provider is down nor how many
// there are.
func anonymized(err error) error {
	if err == nil {
		return nil
	}
	return httpx.Unavailable(fault.New(fault.UpstreamError,
		"not every provider serves us; sign in to see which"))
}

// providersReady returns the fault that names each enabled provider that is down, or nil.
func providersReady(states []health.ProviderState) error {
	enabled := slices.ContainsFunc(states, func(p health.ProviderState) bool { return p.State != "disabled" })
	if !enabled {
		return httpx.Unavailable(fault.New(fault.ProviderDisabled, "no provider is enabled"))
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
	return httpx.Unavailable(e)
}

// scrape answers in Prometheus's text format.
func (h *probes) scrape(req *httpx.Request) (httpx.Response, error) {
	if err := h.metrics.CatchUp(req.Context()); err != nil {
		h.env.Log.Warn("attempts or usage not counted", "request_id", req.ID, "error", h.env.Redact(httpx.Cause(err)))
	}
	text, contentType, err := h.metrics.Text()
	return httpx.Response{Bytes: text, ContentType: contentType, Volatile: true}, err
}

func (h *probes) whoAmI(req *httpx.Request) (httpx.Response, error) {
	return httpx.Response{Value: httpx.IdentityOf(req.Principal)}, nil
}
