// Package mcphttp speaks MCP over Streamable HTTP, at one address, with agents that have a token for it (claudeops
// token create --agent). Who may come in, with which rights, and how many, is decided by door.Tokens, as for those who
// come through a socket; what they say is answered by the same loop. No other token opens this address, nor does a
// login, a proxy's user or an address.
//
// Two eras of the protocol meet here. Up to 2025-11-25 a client begins a session (initialize), names it in each request
// (Mcp-Session-Id), and may take up a stream again that broke (Last-Event-ID); a call goes on when its connection is
// cut. Since 2026-07-28 each request stands for itself, and a client takes a call back by going away. Such requests of
// one token make one connection, which is listed and cut off as others are.
package mcphttp

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/authserver"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// Options configures a Server. All fields are required, except Limits and Issuer.
type Options struct {
	Tokens *door.Tokens // nil: no client is admitted
	Guard  *guard.Guard
	Now    func() time.Time
	Limits Limits
	// Issuer is the authorization server that programs are sent to which show no token; "" for none. nil: none at all.
	Issuer func(*http.Request) string
}

// Limits bound what agents take. A value of zero is the default.
type Limits struct {
	Heartbeat time.Duration // how long a stream says nothing; 15 s
	Write     time.Duration // how long a client may take to read 64 KiB; 30 s
	// for an answer that is to come alone: beyond, it comes on a stream, which is kept alive; 100 ms
	Stream time.Duration
	Idle   time.Duration // after which an unused session ends; 30 min
	// after which requests that stand for themselves get a new connection, with the operator's rules of then; 10 min
	Renew time.Duration
	Kept  time.Duration // how long what a stream said can be asked for again; 5 min
	Wait  time.Duration // for one of too many requests of a session to end, before another is refused; 10 s
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&l.Heartbeat, 15*time.Second)
	set(&l.Write, 30*time.Second)
	set(&l.Stream, 100*time.Millisecond)
	set(&l.Idle, 30*time.Minute)
	set(&l.Renew, 10*time.Minute)
	set(&l.Kept, 5*time.Minute)
	set(&l.Wait, 10*time.Second)
	return l
}

// Path is the path of MCP, below the base path. MetadataPath has its metadata (RFC 9728); clients ask with and without
// Path behind it.
const (
	Path         = "/mcp"
	MetadataPath = authserver.ProtectedPath
)

// maxMessage bounds a body, in bytes. What is larger is refused by the loop, which has its first bytes, and records it.
const maxMessage = 4 << 20

// Wrong tokens a minute, from one address and from all of them.
const (
	wrongEach = 10
	wrongAll  = 200
)

// way is the name of a connection over this transport.
const way = "https"

// Server answers MCP clients. It is safe for concurrent use.
type Server struct {
	options Options
	wrong   *guard.Failures
	ctx     context.Context // ends with the server
	end     context.CancelFunc

	mu        sync.Mutex
	sessions  map[string]*session // by id
	stateless map[string]*session // by the holder of the token, for requests that stand for themselves
}

// New makes a Server.
func New(o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	s := &Server{options: o, sessions: map[string]*session{}, stateless: map[string]*session{}}
	s.wrong = guard.NewFailures(o.Now, wrongEach, wrongAll,
		"too many requests without a good token")
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// End ends all sessions, for good: calls that have written nothing end, others are finished as door.Host says. It does
// not wait.
func (s *Server) End() { s.end() }

// Routes returns the routes of MCP. They are not in the API's description: MCP has its own.
func (s *Server) Routes() []handler.Route {
	bounded := &handler.BodyLimit{Bytes: maxMessage, Advice: "send less at once", Within: 30 * time.Second}
	routes := []handler.Route{
		{Method: http.MethodPost, Pattern: Path, Agents: true, Handle: s.post, Body: bounded},
		{Method: http.MethodGet, Pattern: Path, Agents: true, Handle: s.listen},
		{Method: http.MethodDelete, Pattern: Path, Agents: true, Handle: s.leave, Body: handler.NoBody()},
	}
	for _, pattern := range []string{MetadataPath, MetadataPath + Path} {
		routes = append(routes, handler.Route{Method: http.MethodGet, Pattern: pattern, Agents: true, Handle: s.metadata})
	}
	return routes
}

// metadata describes what is protected here, for clients that look for a way to sign in.
func (s *Server) metadata(req *handler.Request) (handler.Response, error) {
	said := map[string]any{
		"resource": s.options.Guard.Address(req.Request) + Path, "resource_name": "Claude Ops",
		"bearer_methods_supported": []string{"header"},
	}
	if issuer := s.issuer(req); issuer != "" {
		said["authorization_servers"], said["scopes_supported"] = []string{issuer}, []string{oauth.Scope}
	}
	return handler.Response{Value: said}, nil
}

func (s *Server) issuer(req *handler.Request) string {
	if s.options.Issuer == nil {
		return ""
	}
	return s.options.Issuer(req.Request)
}

// holder identifies the sender: the secret it sent, and whose it is. A program that gets another access token stays the
// same holder.
type holder struct{ secret, id string }

// credential finds who has the token that a request shows. The error is the answer.
func (s *Server) credential(req *handler.Request) (h holder, err error) {
	if s.options.Tokens == nil {
		return holder{}, fault.New(fault.NotFound, "no agents are let in here")
	}
	if err := s.options.Guard.SameOrigin(req.Request); err != nil {
		return holder{}, err
	}
	var a door.Arrival
	secret, refused := bearer(req.Header.Values("Authorization"))
	from := s.options.Guard.Client(req.Request)
	if refused != nil {
		s.options.Tokens.Refused(req.Context(), way, from, refused)
	} else {
		a, refused = s.options.Tokens.Check(req.Context(), secret, way, from)
	}
	switch {
	case refused == nil:
		req.Principal.Actor = a.Actor // for the log
		return holder{secret, cmp.Or(a.Holder, a.Credential)}, nil
	case refused.Code != fault.Unauthenticated:
		return holder{}, refused
	}
	err = s.wrong.Count(from, refused)
	if fault.CodeOf(err) != fault.Unauthenticated {
		return holder{}, err
	}
	challenge := `Bearer realm="claudeops", resource_metadata="` + s.options.Guard.Address(req.Request) + MetadataPath +
		Path + `"`
	if s.issuer(req) != "" {
		challenge += `, scope="` + oauth.Scope + `"`
	}
	if len(req.Header.Values("Authorization")) > 0 {
		challenge += `, error="invalid_token"`
	}
	return holder{}, &handler.StatusError{Status: http.StatusUnauthorized, Err: refused,
		Header: http.Header{"Www-Authenticate": {challenge}}}
}

// bearer returns the token among the values of Authorization.
func bearer(given []string) (string, *fault.Error) {
	if len(given) == 0 {
		return "", fault.New(fault.Unauthenticated,
			"an agent's token is needed, as `Authorization: Bearer` (claudeops token create --agent); nothing else lets in here")
	}
	scheme, secret, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", fault.New(fault.Unauthenticated, "Authorization must be `Bearer` and a token, once")
	}
	return strings.TrimSpace(secret), nil
}
