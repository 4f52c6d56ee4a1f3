// Package web is the door for people and programs. It serves the REST API (web/api), the pages (web/dashboard) and the
// stream of changes (web/live) on one address.
//
// Every request passes the same guard (web/httpx) in the same order: host, origin, path, who calls, scope. Then its
// handler gives a response or an error, and one function renders every error (response.go). What handlers have in
// common is in web/httpx.
package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/live"
	"github.com/claudeops/claudeops/internal/web/mcphttp"
	"github.com/claudeops/claudeops/internal/web/signin"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Server answers HTTP requests. It is an http.Handler, safe for concurrent use.
type Server struct {
	env       httpx.Env
	guard     *httpx.Guard
	mux       *http.ServeMux
	metrics   *health.Metrics
	health    *health.Checker
	hub       *live.Hub
	dashboard *dashboard.Dashboard
	mcp       *mcphttp.Server
	programs  *signin.AuthServer
	kept      *kept
}

// New makes a Server. An error is a fault in an embedded file, or in the table of routes.
func New(o Options) (*Server, error) {
	routes, s, err := assemble(o)
	if err != nil {
		return nil, err
	}
	return s, s.register(routes)
}

// register serves the routes. A route that takes bodies without a bound is a mistake of the program.
func (s *Server) register(routes []httpx.Route) error {
	for _, r := range routes {
		if r.Body == nil && r.Method != http.MethodGet {
			return fmt.Errorf("the route %s %s has no bound for its body", r.Method, r.Pattern)
		}
		s.mux.Handle(r.Method+" "+r.Pattern, s.routeHandler(r))
	}
	return nil
}

// maxProposals bounds how many proposals are judged at the same time, and with them the memory that their bodies and
// the search for secrets take. Others wait, their bodies unread.
const maxProposals = 8

// assemble makes the parts of a Server, and the routes that they have.
func assemble(o Options) ([]httpx.Route, *Server, error) {
	s := &Server{
		env: o.Env, mux: http.NewServeMux(),
		guard: httpx.NewGuard(httpx.GuardOptions{Network: o.Network, Access: o.Access, Tier: o.Settings.Tier,
			Now: o.Env.Now}),
		health: health.New(health.Options{
			Doctor: doctorOf(o), Stamp: o.Rules.Stamp, Audit: o.Records.Audit, ComparePulls: o.Rules.ComparePulls,
			Registry: o.Providers.Registry, Env: o.Env,
		}),
	}
	s.kept = &kept{changes: o.Records.Changes, health: s.health, env: o.Env}
	s.hub = live.New(live.Options{Topics: topics(o, s.health), Limits: o.Live.Limits, Guard: s.guard, Env: o.Env})
	s.metrics = health.NewMetrics(health.MetricsOptions{
		Settings: o.Settings, Records: o.Records, Health: s.health, Now: o.Env.Now,
		Remaining: o.Providers.Remaining, Latency: o.Providers.Latency, Streams: s.hub.Count,
		Boundary: o.Rules.Boundary, Room: o.Rules.Room,
		ScheduledEvery: func() time.Duration { return o.Sessions.Plan().Every },
	})
	for _, sender := range o.Webhooks.Senders {
		if sender.Secret() != "" {
			s.metrics.ExpectDeliveries(sender.Source.Name)
		}
	}
	s.programs = signin.NewAuthServer(signin.AuthServerOptions{Service: o.Agents.Programs, Guard: s.guard,
		MCPPath: mcphttp.Path,
		Now:     o.Env.Now})
	s.mcp = mcphttp.New(mcphttp.Options{Tokens: o.Agents.Tokens, Limits: o.Agents.Limits, Guard: s.guard, Now: o.Env.Now,
		Issuer: s.programs.OfferedBy})
	turns := httpx.NewTurns(maxProposals)
	routes, docs := api.Routes(api.Options{
		Settings: o.Settings, Toolsets: o.Toolsets.Operations, Turns: turns, Records: o.Records,
		Acts: o.Acts, Webhooks: o.Webhooks, Registry: o.Providers.Registry, Policy: o.Rules.Policy, Guard: s.guard,
		Health:  s.health,
		Metrics: s.metrics, Env: o.Env,
	})
	people := signin.New(signin.Options{Providers: o.SignIn, Access: o.Access, Guard: s.guard, Random: rand.Reader,
		Now: o.Env.Now})
	routes = append(routes, people.Routes()...)
	pages, err := dashboard.New(dashboard.Options{
		Settings: o.Settings, Promote: operationByName(operation.List(o.Toolsets.Operations...), prflow.OpPromote),
		Turns:   turns,
		Records: o.Records,
		People:  dashboard.People{Sessions: o.Sessions, Acts: o.Acts}, Providers: o.Providers.Providers,
		Policy: o.Rules.Policy, Guard: s.guard, SignIn: people, Programs: s.programs,
		Health: s.health, Hub: s.hub, Toolsets: o.Toolsets.Pages, Docs: docs, Env: o.Env,
	})
	if err != nil {
		return nil, nil, err
	}
	s.dashboard = pages
	return slices.Concat(routes, s.mcp.Routes(), s.programs.Routes(), pages.Routes()), s, nil
}

// doctorOf returns doctor's findings about the server and its toolsets.
func doctorOf(o Options) func(ctx context.Context) []doctor.Finding {
	if o.Toolsets.Findings == nil {
		return o.Rules.Doctor
	}
	return func(ctx context.Context) []doctor.Finding {
		return append(o.Rules.Doctor(ctx), o.Toolsets.Findings(ctx)...)
	}
}

// operationByName returns the operation with a name; the zero one if its toolset is not enabled.
func operationByName(list []operation.Operation, name string) operation.Operation {
	for _, o := range list {
		if o.Name == name {
			return o
		}
	}
	return operation.Operation{}
}

// topics lists the sources of live updates, the record first and the health last.
func topics(o Options, h *health.Checker) []live.Topic {
	version := func(ctx context.Context) (int64, error) {
		seq, _, err := o.Records.Audit.Head(ctx)
		return seq, err
	}
	return slices.Concat([]live.Topic{{Name: live.TopicAudit, Version: version}}, o.Live.Topics,
		[]live.Topic{{Name: live.TopicHealth, Version: h.Version}})
}

// Watch makes the metrics begin to count now, rather than at the first scrape.
func (s *Server) Watch(ctx context.Context) error { return s.metrics.CatchUp(ctx) }

// KeepVerifying verifies the audit now and then again and again, until ctx ends.
func (s *Server) KeepVerifying(ctx context.Context) { s.health.KeepVerifying(ctx) }

// VerifyOnce verifies the audit once, as KeepVerifying does.
func (s *Server) VerifyOnce(ctx context.Context) { s.health.VerifyOnce(ctx) }

// Time limits of a connection. A proposal may take the longest that prflow lets it take: its text is searched, it waits
// for another one, it is written.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = time.Minute
	writeTimeout      = 5 * time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// HTTPServer wraps the handler with limits that slow clients cannot get round. Its Shutdown ends the streams of changes
// and the connections of agents; see mcphttp.Server.End.
func (s *Server) HTTPServer() *http.Server {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	server.RegisterOnShutdown(s.hub.End)
	server.RegisterOnShutdown(s.mcp.End)
	return server
}

// ServeHTTP guards, routes and renders.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &httpx.Request{Request: r, ID: s.env.NewID()}
	out := &recorder{ResponseWriter: w}
	started := s.env.Now()
	defer func() {
		p := recover()
		if err, _ := p.(error); errors.Is(err, http.ErrAbortHandler) {
			defer panic(p) // the connection is cut, so that a part is not taken for the whole
		} else if p != nil {
			s.env.Log.Error("panic in a handler", "request_id", req.ID, "panic", p, "stack", string(debug.Stack()))
			if out.status == 0 {
				s.problem(out, req, fault.From(fmt.Errorf("panic: %v", p)))
			}
		}
		s.metrics.Exchange(req.Pattern, out.status, s.env.Now().Sub(started))
		level := slog.LevelInfo
		if out.status == http.StatusOK && isRoutine(req.Pattern) {
			level = slog.LevelDebug
		}
		s.env.Log.Log(r.Context(), level, "request", "request_id", req.ID, "method", req.Method, "route", req.Pattern,
			"status", out.status,
			"caller", req.Principal.Name(), "duration", s.env.Now().Sub(started))
	}()
	httpx.Secure(out.Header())
	out.Header().Set("X-Request-Id", req.ID)
	if err := s.guard.Check(r); err != nil {
		s.problem(out, req, err)
		return
	}
	s.route(out, req)
}

// isProbe reports whether a path is one of the probes, which are there beside the base path too.
func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" }

// isRoutine reports whether machines request a route every few seconds: its successful answers are not logged.
func isRoutine(pattern string) bool {
	return slices.Contains([]string{"GET /healthz", "GET /readyz", "GET /metrics"}, pattern)
}

// route strips the base path and hands the request to the table.
func (s *Server) route(w http.ResponseWriter, req *httpx.Request) {
	rest, below := strings.CutPrefix(req.URL.Path, s.guard.BasePath)
	if inner := s.programs.Inner(req.URL.Path); inner != "" {
		rest, below = inner, true
	}
	if isProbe(req.URL.Path) { // probes of the process itself do not use the proxy's path
		rest, below = req.URL.Path, true
	}
	if !below || rest != "" && rest[0] != '/' || rest != "" && unclean(rest) {
		s.problem(w, req, httpx.NothingHere(s.guard.BasePath))
		return
	}
	if rest == "" {
		rest = "/"
	}
	inner := req.WithContext(context.WithValue(req.Context(), requestKey{}, req))
	address := *req.URL
	address.Path, address.RawPath = rest, strings.TrimPrefix(address.RawPath, s.guard.BasePath)
	inner.URL = &address
	_, pattern := s.mux.Handler(inner)
	if pattern == "" {
		if who, err := s.guard.Identify(req); err == nil {
			req.Principal = who // so that the page of the error has their navigation
		}
		s.problem(w, req, s.noRoute(inner))
		return
	}
	s.mux.ServeHTTP(w, inner)
}

// unclean reports whether the mux would redirect the path. Nothing of ours links to such a one.
func unclean(p string) bool {
	cleaned := path.Clean(p)
	return p != cleaned && p != cleaned+"/"
}

// noRoute says what is wrong with an address: unknown, or known for other methods only.
func (s *Server) noRoute(r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return httpx.NothingHere(s.guard.BasePath)
	}
	return &httpx.StatusError{
		Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {strings.Join(allowed, ", ")}},
		Err: fault.New(fault.InvalidArgument, "this address takes %s", strings.Join(allowed, ", ")),
	}
}

// requestKey is the key under which a request passes the mux, which hands on nothing but the library's.
type requestKey struct{}

// routeHandler makes the handler of a route: who calls, may they, call, encode.
func (s *Server) routeHandler(route httpx.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := r.Context().Value(requestKey{}).(*httpx.Request)
		req.Request, req.Page = r, route.Page
		if route.Body != nil {
			req.Limit = *route.Body
		}
		if err := s.handle(w, req, &route); err != nil {
			s.problem(w, req, err)
		}
	})
}

// handle answers a request. Its stack stays small, since each connection keeps one of the size that it has grown to.
func (s *Server) handle(w http.ResponseWriter, req *httpx.Request, route *httpx.Route) error {
	done, err := s.admit(w, req, route)
	if err != nil {
		return err
	}
	defer done()
	answer := route.Handle
	if keeps(route) {
		answer = func(req *httpx.Request) (httpx.Response, error) { return s.kept.answerCached(req, route.Handle) }
	}
	response, err := answer(req)
	if err == nil {
		s.writeResponse(w, req, &response)
	}
	return err
}

// admit lets a request reach its handler, in its turn. done gives the turn back.
func (s *Server) admit(w http.ResponseWriter, req *httpx.Request, route *httpx.Route) (done func(), err error) {
	if err := hurry(w, req); err != nil {
		return nil, err
	}
	if err := s.guard.Admit(req, *route); err != nil {
		return nil, err
	}
	done = func() {}
	if route.Turns != nil {
		if done, err = takeTurn(w, req, route.Turns); err != nil {
			_ = route.Refused(req, fault.New(fault.CodeOf(err), "the caller went away while others' proposals were judged"))
			return nil, err
		}
	}
	if err := giveTime(w, req, route.Takes); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// hurry gives the body the time that its route has for it.
func hurry(w http.ResponseWriter, req *httpx.Request) error {
	if _, served := req.Context().Value(http.ServerContextKey).(*http.Server); !served || req.Limit.Within == 0 {
		return nil
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(req.Limit.Within)) // of the network's clock
}

// takeTurn waits until a proposal may be judged. Its body has its time from then on, not from when it began to wait.
func takeTurn(w http.ResponseWriter, req *httpx.Request, turns *httpx.Turns) (done func(), err error) {
	server, served := req.Context().Value(http.ServerContextKey).(*http.Server)
	if !served || server.ReadTimeout <= 0 {
		return turns.Wait(req.Context())
	}
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if done, err = turns.Wait(req.Context()); err != nil {
		return nil, err
	}
	if err := connection.SetReadDeadline(time.Now().Add(server.ReadTimeout)); err != nil { // of the network's clock
		done()
		return nil, err
	}
	return done, nil
}

// giveTime lets the answer of a route that takes long be written when it is there.
func giveTime(w http.ResponseWriter, req *httpx.Request, takes time.Duration) error {
	if _, served := req.Context().Value(http.ServerContextKey).(*http.Server); !served || takes == 0 {
		return nil
	}
	// of the network's clock
	return http.NewResponseController(w).SetWriteDeadline(time.Now().Add(takes + time.Minute))
}

// recorder remembers the status for log and metrics.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Options configures a Server. All fields are required unless their comment says otherwise.
type Options struct {
	Settings httpx.Settings
	Callers
	Toolsets Toolsets
	Records  views.Records
	People
	Providers Providers
	Webhooks  api.Webhooks
	Rules     Rules
	Live      Live
	Env       httpx.Env
}

// Callers says who may call, and from where.
type Callers struct {
	Network httpx.Network
	Access  *access.Gatekeeper
	SignIn  []*identity.Provider // by which people sign in; none: by tokens alone
	Agents  Agents
}

// Agents configures the admission of agents that connect from elsewhere.
type Agents struct {
	Tokens *gateway.Tokens // nil: no client is admitted
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
	Boundary func() health.Boundary
	// Room is what the records take, and the disk that they are on; nil: it is in no metric.
	Room func(ctx context.Context) (health.Room, error)
	// ComparePulls compares the audit with the marks of pull requests at the providers; nil: that cannot be asked.
	ComparePulls func(ctx context.Context) ([]record.HeadCheck, error)
}

// Providers holds the access to providers for people, and measurements of it.
type Providers struct {
	dashboard.Providers
	// Remaining returns how many requests each provider last said are left, by name; nil where no provider says so.
	Remaining func() map[string]int
	Latency   *health.ProviderLatency // of requests to providers; nil where it is not measured
}

// Live holds what pages follow beside the record.
type Live struct {
	Topics []live.Topic
	Limits live.Limits
}

// Front reads what the overview shows first.
func (s *Server) Front(ctx context.Context) (dashboard.Front, error) { return s.dashboard.Front(ctx) }
