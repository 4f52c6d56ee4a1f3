package web

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Server answers HTTP requests. It is an http.Handler, safe for concurrent use.
type Server struct {
	Options
	mux     *http.ServeMux
	origins *http.CrossOriginProtection
	signIns *failures
	hooks   hookGate
	metrics *metrics
	heavy   chan struct{} // holds a token while the whole record is being read
	slots   chan struct{} // holds a token for each proposal that is being judged
	health  healthMemo
	pings   pingMemo
	openAPI document
	hub     *hub
	pulls   pullsMemo
	pages   *pages.Set
	assets  pages.Assets
	checked verifiedMemo
}

// New makes a Server. An error is a fault in an embedded file, or in the table of routes.
func New(o Options) (*Server, error) {
	s := &Server{
		Options: o, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		signIns: newFailures(o.Now, wrongSignInsEach, wrongSignInsAll, "too many attempts to sign in; wait a minute"),
		metrics: newMetrics(o), heavy: make(chan struct{}, 1), slots: make(chan struct{}, maxProposals),
		pulls: pullsMemo{place: make(chan struct{}, 1)},
		pings: pingMemo{place: make(chan struct{}, 1)},
		hooks: newHookGate(o.Now),
	}
	s.hub = newEvents(s)
	routes := s.routes()
	doc, err := newDocument(s, routes)
	if err != nil {
		return nil, err
	}
	s.openAPI = doc
	if s.pages, err = pages.Load(); err != nil {
		return nil, err
	}
	if s.assets, err = pages.LoadAssets(); err != nil {
		return nil, err
	}
	for _, r := range append(routes, s.pageRoutes()...) {
		bound, err := boundOf(r)
		if err != nil {
			return nil, err
		}
		s.mux.Handle(r.method+" "+r.pattern, s.serve(r, bound))
	}
	return s, nil
}

// maxProposals bounds how many proposals are judged at the same time, and with them the memory that their bodies and the
// search for secrets take. Others wait, their bodies unread.
const maxProposals = 8

// Time limits of a connection. A proposal may take the longest that prflow lets it take: its text is searched, it waits
// for another one, it is written.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = time.Minute
	writeTimeout      = 5 * time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// HTTPServer wraps the handler with limits that slow clients cannot get round. Its Shutdown ends the streams of changes.
func (s *Server) HTTPServer() *http.Server {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	server.RegisterOnShutdown(s.hub.end)
	return server
}

// call is one request on its way through the handlers.
type call struct {
	*http.Request
	id    string // request id of this exchange; an attempt has its own
	who   access.Principal
	page  bool      // it is for a page
	bound bodyBound // of its body
	at    string    // what has changed before the page was begun; see position
}

// ServeHTTP guards, routes and renders.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, id: s.NewID()}
	out := &recorder{ResponseWriter: w}
	started := s.Now()
	defer func() {
		p := recover()
		if err, _ := p.(error); errors.Is(err, http.ErrAbortHandler) {
			defer panic(p) // the connection ends, so that nobody takes a part for the whole
		} else if p != nil {
			s.Log.Error("panic in a handler", "request_id", c.id, "panic", p, "stack", string(debug.Stack()))
			if out.status == 0 {
				s.problem(out, c, fault.From(fmt.Errorf("panic: %v", p)))
			}
		}
		s.metrics.exchange(c.Pattern, out.status, s.Now().Sub(started))
		s.Log.Info("request", "request_id", c.id, "method", c.Method, "route", c.Pattern, "status", out.status,
			"caller", c.who.Name, "duration", s.Now().Sub(started))
	}()
	secure(out.Header())
	out.Header().Set("X-Request-Id", c.id)
	if err := s.guard(r); err != nil {
		s.problem(out, c, err)
		return
	}
	s.route(out, c)
}

// route strips the base path and hands the request to the table.
func (s *Server) route(w http.ResponseWriter, c *call) {
	rest, below := strings.CutPrefix(c.URL.Path, s.Network.BasePath)
	if !below || rest != "" && rest[0] != '/' || rest != "" && unclean(rest) {
		s.problem(w, c, s.nothingHere())
		return
	}
	if rest == "" {
		rest = "/"
	}
	inner := c.WithContext(withCall(c.Context(), c))
	address := *c.URL
	address.Path, address.RawPath = rest, strings.TrimPrefix(address.RawPath, s.Network.BasePath)
	inner.URL = &address
	_, pattern := s.mux.Handler(inner)
	if pattern == "" {
		s.problem(w, c, s.noRoute(inner))
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
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return s.nothingHere()
	}
	return &statusError{
		status: http.StatusMethodNotAllowed, header: http.Header{"Allow": {strings.Join(allowed, ", ")}},
		err: fault.New(fault.InvalidArgument, "this address takes %s", strings.Join(allowed, ", ")),
	}
}

func (s *Server) nothingHere() error {
	return fault.New(fault.NotFound, "there is nothing at this address; %s/openapi.json lists what there is", s.Network.BasePath)
}

// serve makes the handler of a route: who calls, may they, call, encode.
func (s *Server) serve(r route, bound bodyBound) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := callOf(req.Context())
		c.Request, c.page, c.bound = req, r.page, bound
		err := hurry(w, c)
		if err == nil {
			err = s.admit(c, r)
		}
		if err == nil && r.proposes {
			var done func()
			if done, err = s.takeTurn(w, c); err == nil {
				defer done()
			} else {
				s.flow(c).Reject(c.Context(), caller(c), fault.CodeOf(err), "the caller went away while others' proposals were judged")
			}
		}
		if err == nil {
			var a answer
			if a, err = r.handle(c); err == nil {
				s.write(w, c, a)
				return
			}
		}
		s.problem(w, c, err)
	})
}

// hurry gives the body the time that its route has for it.
func hurry(w http.ResponseWriter, c *call) error {
	if _, served := c.Context().Value(http.ServerContextKey).(*http.Server); !served || c.bound.within == 0 {
		return nil
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(c.bound.within)) // of the network's clock
}

// takeTurn waits until a proposal may be judged. Its body has its time from then on, not from when it began to wait.
func (s *Server) takeTurn(w http.ResponseWriter, c *call) (done func(), err error) {
	server, served := c.Context().Value(http.ServerContextKey).(*http.Server)
	if !served || server.ReadTimeout <= 0 {
		return enter(c.Context(), s.slots)
	}
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if done, err = enter(c.Context(), s.slots); err != nil {
		return nil, err
	}
	if err := connection.SetReadDeadline(time.Now().Add(server.ReadTimeout)); err != nil { // of the network's clock
		done()
		return nil, err
	}
	return done, nil
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
