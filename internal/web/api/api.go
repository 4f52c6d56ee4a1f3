// Package api is the REST API under /api/v1 with what programs ask beside it: its description, the webhooks of forges, probes
// and metrics. Handlers decode, call and encode; the rules are prflow's.
package api

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/operation"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/session"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/metrics"
	"github.com/claudeops/claudeops/internal/web/records"
	"github.com/claudeops/claudeops/internal/webhook"
)

// prefix is the path below which the API itself is.
const prefix = "/api/v1"

// Flow is the use case that the handlers call; *prflow.Service is one.
type Flow interface {
	Create(ctx context.Context, caller operation.Caller, raw []byte) (prflow.CreateResult, error)
	Promote(ctx context.Context, caller operation.Caller, id string) (prflow.CreateResult, error)
	List(ctx context.Context, raw []byte) (prflow.ListResult, error)
	Status(ctx context.Context, raw []byte) (prflow.StatusResult, error)
	// Reject records a proposal that never became a call.
	Reject(ctx context.Context, caller operation.Caller, code fault.Code, message string)
}

// Sessions starts and stops the sessions of agents for people. Errors are faults.
type Sessions interface {
	// Start starts a session, returns its id when its beginning is recorded, and records who did it, before it begins, or why it
	// was refused. Errors are those of session.Supervisor.
	Start(ctx context.Context, o people.Operator, spec session.Spec) (id string, err error)
	// Stop has a session end, does not wait for that, and records it. Errors are those of session.Supervisor.
	Stop(ctx context.Context, o people.Operator, id string) error
	// Refused records an action that was refused before it came to Start or Stop. It returns the error with the request id of the
	// row.
	Refused(ctx context.Context, o people.Operator, action people.Action, why error) error
}

// Webhooks is what the webhooks of forges lead to.
type Webhooks struct {
	Follower Follower
	Senders  []Sender
}

// Sender is a kind of forge that sends webhooks, and the secret that it signs them with; without one they are refused.
type Sender struct {
	Source webhook.Source
	Secret string
}

// Follower follows our pull requests; *follow.Follower is one.
type Follower interface {
	// Accept lets the pull requests that a delivery is about be looked at; taken is false if none is ours. conflict if the
	// delivery was taken before. It asks no provider and does not wait for the look.
	Accept(ctx context.Context, provider string, d webhook.Delivery) (taken bool, err error)
}

// Options are what an API is made of. All are required.
type Options struct {
	Settings handler.Settings
	Flow     func(ceiling gitprovider.Tier) Flow // under a ceiling; see prflow.Service.AtMost
	Turns    *handler.Turns                      // of proposals
	Records  records.Records
	Sessions Sessions
	Webhooks Webhooks
	Registry *gitprovider.Registry
	Policy   func() (policy.Policy, error) // the effective one, or why the configured one cannot be read
	Guard    *guard.Guard
	Health   *health.Checker
	Metrics  *metrics.Metrics
	Env      handler.Env
}

// Routes are the routes of the API and of what programs ask beside it. An error is a fault in an embedded file or in a route.
func Routes(o Options) ([]handler.Route, error) {
	replies := &idempotency{o.Records.Replies, o.Env}
	proposals := &proposals{o.Flow, o.Turns, o.Records.Attempts, o.Records.Pulls, replies, o.Env}
	sessions := &sessions{o.Sessions, o.Records.Sessions, replies, o.Guard.BasePath, o.Env}
	audit := &audit{o.Records.Audit, o.Records.Pulls, o.Health}
	status := &status{o.Settings, o.Registry, o.Policy, o.Health, o.Env}
	probes := &probes{o.Records.Attempts, o.Health, o.Metrics, o.Guard, o.Env}
	webhooks := newWebhooks(o)
	documents := &documents{}
	routes := slices.Concat(proposals.routes(), sessions.routes(), audit.routes(), status.routes(), o.Guard.Routes(), probes.routes(),
		documents.routes(), webhooks.routes())
	return routes, documents.describe(o.Settings.Version, o.Guard.BasePath, routes)
}

// read is a route for whoever may read.
func read(pattern string, handle handler.Func, doc handler.Doc) handler.Route {
	return handler.Route{Method: "GET", Pattern: pattern, Scope: access.Read, Handle: handle, Doc: doc}
}
