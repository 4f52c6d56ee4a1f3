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

// Options are what a Server is made of. All are required unless it says otherwise.
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

// Callers is who may call, and from where.
type Callers struct {
	Network guard.Network
	Access  *access.Gatekeeper
	SignIn  []*identity.Provider // by which people sign in; none: by tokens alone
	Agents  Agents
}

// Agents are those that are connected from elsewhere.
type Agents struct {
	Tokens *door.Tokens // nil: nobody is let in
	Limits mcphttp.Limits
	// Programs lets agents in by people's consent in a browser; nil: by tokens that were shown to a person alone.
	Programs *oauth.Service
}

// People is what people do here beside reviewing.
type People struct {
	Sessions dashboard.Sessions
	Acts     []operation.Operation // over REST, and on pages of their own
}

// Toolsets are those that are enabled.
type Toolsets struct {
	Operations []operation.Toolset // what can be asked over REST, beside what web/api answers
	Pages      dashboard.Toolsets
	Findings   func(ctx context.Context) []doctor.Finding // what doctor says of them; nil: nothing
}

// Rules is what holds on this server, and what would stop a pull request.
type Rules struct {
	Policy func() (policy.Policy, error) // the effective one, or why the configured one cannot be read
	Doctor func(ctx context.Context) []doctor.Finding
	// Boundary is what keeps agents from our files now; nil: it is in no metric.
	Boundary func() metrics.Boundary
	// Room is what the records take, and the disk that they are on; nil: it is in no metric.
	Room func(ctx context.Context) (metrics.Room, error)
	// ComparePulls compares the audit with the marks of pull requests at the providers; nil: that cannot be asked.
	ComparePulls func(ctx context.Context) ([]record.HeadCheck, error)
}

// Providers is what is asked at providers for people, and how it went.
type Providers struct {
	dashboard.Providers
	// Remaining is how many requests each provider last said are left, by name; nil where no provider says so.
	Remaining func() map[string]int
	Latency   *metrics.ProviderLatency // of requests to providers; nil where nobody measures them
}

// Live is what pages follow beside the record.
type Live struct {
	Topics []live.Topic
	Limits live.Limits
}
