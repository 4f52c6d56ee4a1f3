// Package api is the REST API under /api/v1 with what programs ask beside it: its description, the webhooks of forges,
// probes and metrics. Handlers decode, call and encode; the rules are prflow's.
package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// prefix is the path below which the API itself is.
const prefix = "/api/v1"

// Webhooks handles the webhooks of forges.
type Webhooks struct {
	Follower Follower
	Senders  []Sender
	Runs     RunHooks // of the policy; nil for none
}

// Sender is a kind of forge that sends webhooks, and the secret that it signs them with as it is now; without one they
// are refused.
type Sender struct {
	Source forge.Source
	Secret func() string
}

// Follower follows our pull requests; *follow.Follower is one.
type Follower interface {
	// Accept lets the pull requests that a delivery is about be looked at; taken is false if none is ours. conflict if the
	// delivery was taken before. It asks no provider and does not wait for the look.
	Accept(ctx context.Context, provider string, d forge.Delivery) (taken bool, err error)
}

// Options configures an API. All fields are required.
type Options struct {
	Settings httpx.Settings
	Toolsets []operation.Toolset // what is asked of the program, beside what this package answers
	Turns    *httpx.Turns        // of what does more than read
	Records  views.Records
	Acts     []operation.Operation // what people do
	Webhooks Webhooks
	Registry *gitprovider.Registry
	Policy   func() (policy.Policy, error) // the effective one, or why the configured one cannot be read
	Guard    *httpx.Guard
	Health   *health.Checker
	Metrics  *health.Metrics
	Env      httpx.Env
}

// Toolset returns the operations on this server and its records.
func Toolset(o Options) operation.Toolset {
	kernel := sync.OnceValue(func() *operation.Kernel {
		return operation.NewKernel(operation.KernelOptions{Redact: o.Env.Redact, Hide: o.Env.Hide, Log: o.Env.Log,
			Now: o.Env.Now, NewID: o.Env.NewID})
	})
	proposals := &proposals{kernel, o.Records.Attempts, o.Records.Pulls, o.Env}
	sessions := &sessionRoutes{kernel, o.Records.Sessions, o.Env}
	audit := &audit{kernel, o.Records.Audit, o.Records.Pulls, o.Records.Sessions, o.Health}
	status := &statusRoutes{kernel, o.Settings, o.Registry, o.Policy, o.Health, o.Env}
	return operation.Toolset{
		Name:       "server",
		Operations: slices.Concat(proposals.operations(), sessions.operations(), audit.operations(), status.operations()),
	}
}

// Routes returns the routes of the API and of what programs ask beside it, and what describes them for people.
func Routes(o Options) (routes []httpx.Route, docs func() (Docs, error)) {
	replies := &idempotency{o.Records.Replies, o.Env}
	operations := &operationRoutes{o.Turns, httpx.NewTurns(maxRuns), replies, o.Guard.BasePath}
	probes := &probes{o.Records.Attempts, o.Health, o.Metrics, o.Guard, o.Settings.Version, o.Env}
	webhooks := newWebhooks(o)
	documents := &documents{sync.OnceValues(func() (description,
		error) {
		return describeAPI(o.Settings.Version, o.Guard.BasePath, routes)
	})}
	routes = slices.Concat(operations.routes(append(o.Toolsets, Toolset(o), operation.Toolset{Operations: o.Acts})),
		probes.routes(),
		o.Guard.Routes(), documents.routes(), webhooks.routes(), newRunHooks(o).routes())
	return routes, func() (Docs, error) {
		d, err := documents.made()
		return d.docs, err
	}
}

// defineRead completes what reads makes. It leaves no row in the audit.
func defineRead[In, Out any](
	kernel func() *operation.Kernel, o operation.Operation, handle operation.Handle[In, Out],
) operation.Operation {
	return operation.Define(kernel, "", o, operation.CallSpec[In]{Timeout: operation.Unbounded}, handle)
}

// reads returns an operation of REST alone, for everyone who may read.
func reads(name, summary string, route operation.Route) operation.Operation {
	route.Method = http.MethodGet
	return operation.Operation{
		Name: name, Summary: summary, Effect: operation.Read,
		Needs: operation.Needs{For: operation.People, Scope: access.Read}, Route: route,
	}
}

// get returns a route for everyone who may read, without an operation behind it.
func get(pattern string, handle httpx.Func, doc httpx.Doc) httpx.Route {
	return httpx.Route{Method: http.MethodGet, Pattern: pattern, Scope: access.Read, Handle: handle, Doc: doc}
}

// Sizes of a page of any listing.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// pageParams selects a part of a listing.
type pageParams struct {
	before int64 // rows with a lower number; 0: from the newest
	limit  int
}

// pageOf reads cursor and limit. A cursor is valid for the listing that made it; its form may change.
func pageOf(listing, cursor string, limit int) (pageParams, error) {
	p := pageParams{limit: min(limit, maxLimit)}
	if limit == 0 {
		p.limit = defaultLimit
	}
	if cursor == "" {
		return p, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	number, ours := strings.CutPrefix(string(text), listing+":")
	before, numberErr := strconv.ParseInt(number, 10, 64)
	if err != nil || !ours || numberErr != nil || before < 1 {
		return p, badCursor()
	}
	p.before = before
	return p, nil
}

// cursorAfter returns the cursor of what follows the row with the number.
func cursorAfter(listing string, seq int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(listing + ":" + strconv.FormatInt(seq, 10)))
}

// cutPage drops the row beyond the page that was read to see whether there is more, and says where the next page
// begins.
func cutPage[T any](listing string, p pageParams, rows []T, seq func(T) int64) (kept []T, next string) {
	if len(rows) <= p.limit {
		return rows, ""
	}
	kept = rows[:p.limit]
	return kept, cursorAfter(listing, seq(kept[p.limit-1]))
}

func badCursor() error {
	return httpx.Invalid([]fault.Violation{httpx.BadParameter("cursor", "is none that this listing has given")})
}
