// Package api is the REST API under /api/v1 with what programs ask beside it: its description, the webhooks of forges,
// probes and metrics. Handlers decode, call and encode; the rules are prflow's.
package api

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/webhook"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/metrics"
	"github.com/claudeops/claudeops/internal/web/records"
)

// prefix is the path below which the API itself is.
const prefix = "/api/v1"

// Webhooks is what the webhooks of forges lead to.
type Webhooks struct {
	Follower Follower
	Senders  []Sender
}

// Sender is a kind of forge that sends webhooks, and the secret that it signs them with as it is now; without one they
// are refused.
type Sender struct {
	Source webhook.Source
	Secret func() string
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
	Toolsets []operation.Toolset // what is asked of the program, beside what this package answers
	Turns    *handler.Turns      // of what does more than read
	Records  records.Records
	Acts     []operation.Operation // what people do
	Webhooks Webhooks
	Registry *gitprovider.Registry
	Policy   func() (policy.Policy, error) // the effective one, or why the configured one cannot be read
	Guard    *guard.Guard
	Health   *health.Checker
	Metrics  *metrics.Metrics
	Env      handler.Env
}

// Toolset is what is asked of this server and its records.
func Toolset(o Options) operation.Toolset {
	kernel := sync.OnceValue(func() *operation.Kernel {
		return operation.NewKernel(operation.KernelOptions{Redact: o.Env.Redact, Hide: o.Env.Hide, Log: o.Env.Log,
			Now: o.Env.Now, NewID: o.Env.NewID})
	})
	proposals := &proposals{kernel, o.Records.Attempts, o.Records.Pulls, o.Env}
	sessions := &sessionRoutes{kernel, o.Records.Sessions, o.Env}
	audit := &audit{kernel, o.Records.Audit, o.Records.Pulls, o.Records.Sessions, o.Health}
	status := &status{kernel, o.Settings, o.Registry, o.Policy, o.Health, o.Env}
	return operation.Toolset{
		Name:       "server",
		Operations: slices.Concat(proposals.operations(), sessions.operations(), audit.operations(), status.operations()),
	}
}

// Routes are the routes of the API and of what programs ask beside it.
func Routes(o Options) (routes []handler.Route) {
	replies := &idempotency{o.Records.Replies, o.Env}
	operations := &operations{o.Turns, handler.NewTurns(maxRuns), replies, o.Guard.BasePath}
	probes := &probes{o.Records.Attempts, o.Health, o.Metrics, o.Guard, o.Settings.Version, o.Env}
	webhooks := newWebhooks(o)
	documents := &documents{sync.OnceValues(func() (description,
		error) {
		return describe(o.Settings.Version, o.Guard.BasePath, routes)
	})}
	routes = slices.Concat(operations.routes(append(o.Toolsets, Toolset(o), operation.Toolset{Operations: o.Acts})),
		probes.routes(),
		o.Guard.Routes(), documents.routes(), webhooks.routes())
	return routes
}

// read completes what reads makes. It leaves no row in the audit.
func read[In, Out any](
	kernel func() *operation.Kernel, o operation.Operation, handle operation.Handle[In, Out],
) operation.Operation {
	return operation.Define(kernel, "", o, operation.Way[In]{Timeout: operation.Unbounded}, handle)
}

// reads is an operation of REST alone, for whoever may read.
func reads(name, summary string, route operation.Route) operation.Operation {
	route.Method = http.MethodGet
	return operation.Operation{
		Name: name, Summary: summary, Effect: operation.Read,
		Needs: operation.Needs{For: operation.People, Scope: access.Read}, Route: route,
	}
}

// get is a route for whoever may read that no operation stands behind.
func get(pattern string, handle handler.Func, doc handler.Doc) handler.Route {
	return handler.Route{Method: http.MethodGet, Pattern: pattern, Scope: access.Read, Handle: handle, Doc: doc}
}
