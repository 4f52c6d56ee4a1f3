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
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// Options configures a Server. All fields are required, except Limits and Issuer.
type Options struct {
	Tokens *gateway.Tokens // nil: no client is admitted
	Guard  *httpx.Guard
	Now    func() time.Time
	Limits Limits
	// Issuer is the authorization server that programs are sent to which show no token; "" for none. nil: none at all.
	Issuer func(*http.Request) string
}

// Limits bound what agents take. A value of zero is the default.
type Limits struct {
	Heartbeat time.Duration // how long a stream says nothing; 15 s
	Write     time.Duration // how long a client may take to read 64 KiB; 30 s
	// for an answer of what takes long to come alone: beyond, it comes on a stream, which is kept alive; 100 ms. All else
	// has Write.
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
	MetadataPath = signin.ProtectedPath
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
	wrong   *httpx.Failures
	turns   mcpio.Turns     // to look into the records
	ctx     context.Context // ends with the server
	end     context.CancelFunc

	mu        sync.Mutex
	sessions  map[string]*session // by id
	stateless map[string]*session // by the holder of the token, for requests that stand for themselves
}

// New makes a Server.
func New(o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	const atATime = 16
	s := &Server{options: o, turns: mcpio.NewTurns(atATime), sessions: map[string]*session{},
		stateless: map[string]*session{}}
	s.wrong = httpx.NewFailures(o.Now, wrongEach, wrongAll,
		"too many requests without a good token")
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// End ends all sessions, for good: calls that have written nothing end, others are finished as door.Host says. It does
// not wait.
func (s *Server) End() { s.end() }

// Routes returns the routes of MCP. They are not in the API's description: MCP has its own.
func (s *Server) Routes() []httpx.Route {
	bounded := &httpx.BodyLimit{Bytes: maxMessage, Advice: "send less at once", Within: 30 * time.Second}
	routes := []httpx.Route{
		{Method: http.MethodPost, Pattern: Path, Agents: true, Handle: s.post, Body: bounded},
		{Method: http.MethodGet, Pattern: Path, Agents: true, Handle: s.listen},
		{Method: http.MethodDelete, Pattern: Path, Agents: true, Handle: s.endSession, Body: httpx.NoBody()},
	}
	for _, pattern := range []string{MetadataPath, MetadataPath + Path} {
		routes = append(routes, httpx.Route{Method: http.MethodGet, Pattern: pattern, Agents: true, Handle: s.serveMetadata})
	}
	return routes
}

// serveMetadata describes what is protected here, for clients that look for a way to sign in.
func (s *Server) serveMetadata(req *httpx.Request) (httpx.Response, error) {
	said := map[string]any{
		"resource": s.options.Guard.Address(req.Request) + Path, "resource_name": "Claude Ops",
		"bearer_methods_supported": []string{"header"},
	}
	if issuer := s.issuer(req); issuer != "" {
		said["authorization_servers"], said["scopes_supported"] = []string{issuer}, []string{oauth.Scope}
	}
	return httpx.Response{Value: said}, nil
}

func (s *Server) issuer(req *httpx.Request) string {
	if s.options.Issuer == nil {
		return ""
	}
	return s.options.Issuer(req.Request)
}

// holder identifies the sender: the secret it sent, and whose it is. A program that gets another access token stays the
// same holder.
type holder struct{ secret, id string }

// credential finds who has the token that a request shows. The error is the answer.
func (s *Server) credential(req *httpx.Request) (h holder, err error) {
	s.turns.Do(func() { h, err = s.checkCredential(req) })
	return h, err
}

func (s *Server) checkCredential(req *httpx.Request) (h holder, err error) {
	if s.options.Tokens == nil {
		return holder{}, fault.New(fault.NotFound, "no agents are let in here")
	}
	if err := s.options.Guard.SameOrigin(req.Request); err != nil {
		return holder{}, err
	}
	var a gateway.AuthenticatedConn
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
	return holder{}, &httpx.StatusError{Status: http.StatusUnauthorized, Err: refused,
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

// stateless is the version since which each request stands for itself.
const stateless = "2026-07-28"

// Headers of MCP.
const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	methodHeader   = "Mcp-Method"
	nameHeader     = "Mcp-Name"
	eventHeader    = "Last-Event-Id"
	maxVersionText = 40
)

// Codes of JSON-RPC and MCP that have a status of their own since 2026-07-28.
const (
	codeParse      = -32700
	codeRequest    = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeMismatch   = -32020
	codeCapability = -32021
	codeVersion    = -32022
	codeServer     = -32000 // a condition of the server itself, such as too many requests
)

// head holds the fields of a message that a transport needs. The loop refuses ambiguous messages.
type head struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// isNotification reports whether a message is one that gets no answer.
func (h head) isNotification() bool { return len(h.ID) == 0 && h.Method != "" }

// headOf reads what it can. The receiver of the message reports its errors.
func headOf(message []byte) (h head) {
	_ = json.Unmarshal(message, &h)
	return h
}

// isStateless reports whether a request is one of those that stand for themselves: it says so in its body or in its
// header.
func isStateless(header http.Header, h head) bool {
	return isSince(header.Get(versionHeader)) || isSince(h.Params.Meta.Version)
}

func isSince(version string) bool {
	_, err := time.Parse(time.DateOnly, version)
	return err == nil && version >= stateless
}

// checkVersion refuses a header with a version that sessions do not support. Clients of the first version send none.
func checkVersion(header http.Header) error {
	given := header.Values(versionHeader)
	known := []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	if len(given) == 0 || len(given) == 1 && slices.Contains(known, given[0]) {
		return nil
	}
	return badRequest("%s must be one of %s, and is %s", versionHeader, strings.Join(known, ", "),
		httpx.Quote(fmt.Sprintf("%.*s", maxVersionText, given[0])))
}

// mismatch says which header contradicts the body of a request that stands for itself, and with which code; "" for
// none.
func mismatch(header http.Header, h head) (code int, problem string) {
	version := header.Get(versionHeader)
	switch {
	case header.Get(eventHeader) != "":
		return codeMismatch, "Last-Event-ID means nothing since " + stateless + ": make the request again, with another id"
	case version == "":
		return codeMismatch, versionHeader + " is missing"
	case h.Params.Meta.Version == "":
		return codeParams, "_meta lacks io.modelcontextprotocol/protocolVersion"
	case version != h.Params.Meta.Version:
		return codeMismatch, versionHeader + " is not the version in _meta"
	case header.Get(methodHeader) != h.Method:
		return codeMismatch, methodHeader + " is not the method of the body"
	}
	name, named := h.Params.Name, true
	switch h.Method {
	case "tools/call", "prompts/get":
	case "resources/read":
		name = h.Params.URI
	default:
		named = false
	}
	if given, ok := decoded(header.Get(nameHeader)); named && (!ok || given == "" || given != name) {
		return codeMismatch, nameHeader + " is not what the body names"
	}
	return 0, ""
}

// decoded returns the value of a header, which is encoded (=?base64?...?=) where headers cannot have it.
func decoded(value string) (string, bool) {
	inner, found := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if !found || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(inner)
	return string(text), err == nil
}

// badRequestError returns an answer of JSON-RPC that is an error of this transport.
func badRequestError(id json.RawMessage, code int, message string) httpx.Response {
	return rpcError(id, http.StatusBadRequest, code, message)
}

// rpcError returns an error of JSON-RPC with a status of HTTP.
func rpcError(id json.RawMessage, status, code int, message string) httpx.Response {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return httpx.Response{Status: status, Value: map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message},
	}}
}

// statusOf returns the status of an answer that comes alone. Before 2026-07-28 only what could not be read as a request
// has one of its own.
func statusOf(line []byte, alone bool) int {
	id, code := failureIn(line)
	switch code {
	case codeMethod:
		if alone {
			return http.StatusNotFound
		}
	case codeMismatch, codeCapability, codeVersion, codeRequest, codeParams, codeParse:
		if alone || id == "null" {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// failureIn returns the id of an answer that is an error, and its code; 0 for any other. A result is not read: it may
// be long.
func failureIn(line []byte) (id string, code int) {
	var value json.RawMessage
	var failure struct {
		Code int `json:"code"`
	}
	members := json.NewDecoder(bytes.NewReader(line))
	_, err := members.Token()
	for err == nil && members.More() {
		name, broken := members.Token()
		if broken != nil {
			break
		}
		switch name {
		case "result":
			return "", 0
		case "error":
			err = members.Decode(&failure)
		case "id":
			err = members.Decode(&value)
		default:
			err = members.Decode(new(json.RawMessage))
		}
	}
	return string(value), failure.Code
}

// accepts reports whether a client takes answers of a type. One that says nothing takes all.
func accepts(header http.Header, kind string) bool {
	given := strings.ToLower(strings.Join(header.Values("Accept"), ","))
	group, _, _ := strings.Cut(kind, "/")
	return given == "" || strings.Contains(given, kind) || strings.Contains(given, group+"/*") ||
		strings.Contains(given, "*/*")
}

func badRequest(format string, args ...any) error {
	return &httpx.StatusError{Status: http.StatusBadRequest, Err: fault.New(fault.InvalidArgument, format, args...)}
}
