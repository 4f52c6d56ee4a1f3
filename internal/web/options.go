package web

import (
	"context"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/live"
	"github.com/claudeops/claudeops/internal/web/mcphttp"
	"github.com/claudeops/claudeops/internal/web/metrics"
	"github.com/claudeops/claudeops/internal/web/records"
)

// Options configures a Server. All fields are required unless their comment says otherwise.
type Options struct {
	Settings handler.Settings
	Callers
	Toolsets Toolsets
	Records  records.Records
	People
	Providers Providers
	Webhooks  api.Webhooks
	Rules     Rules
	Live      Live
	Env       handler.Env
}

// Callers says who may call, and from where.
type Callers struct {
	Network guard.Network
	Access  *access.Gatekeeper
	SignIn  []*identity.Provider // by which people sign in; none: by tokens alone
	Agents  Agents
}

// Agents configures the admission of agents that connect from elsewhere.
type Agents struct {
	Tokens *door.Tokens // nil: no client is admitted
	Limits mcphttp.Limits
	// Programs admits agents by people's consent in a browser; nil: only by tokens that were shown to a person.
	Programs *oauth.Service
}

// People holds the operations for people other than reviewing.
type People struct {
	Sessions dashboard.Sessions
	Acts     []operation.Operation // over REST, and on pages of their own
}

// Toolsets holds the enabled toolsets.
type Toolsets struct {
	Operations []operation.Toolset // what can be asked over REST, beside what web/api answers
	Pages      dashboard.Toolsets
	Findings   func(ctx context.Context) []doctor.Finding // doctor's findings about them; nil: none
}

// Rules holds the rules of this server, and the checks for what would stop a pull request.
type Rules struct {
	Policy func() (policy.Policy, error) // the effective one, or why the configured one cannot be read
	Doctor func(ctx context.Context) []doctor.Finding
	// Stamp changes whenever doctor's findings about rules and secrets do; nil: they are refreshed like all others.
	Stamp func() string
	// Boundary returns the boundary between agents and our files now; nil: it is in no metric.
	Boundary func() metrics.Boundary
	// Room is what the records take, and the disk that they are on; nil: it is in no metric.
	Room func(ctx context.Context) (metrics.Room, error)
	// ComparePulls compares the audit with the marks of pull requests at the providers; nil: that cannot be asked.
	ComparePulls func(ctx context.Context) ([]record.HeadCheck, error)
}

// Providers holds the access to providers for people, and measurements of it.
type Providers struct {
	dashboard.Providers
	// Remaining returns how many requests each provider last said are left, by name; nil where no provider says so.
	Remaining func() map[string]int
	Latency   *metrics.ProviderLatency // of requests to providers; nil where it is not measured
}

// Live holds what pages follow beside the record.
type Live struct {
	Topics []live.Topic
	Limits live.Limits
}
