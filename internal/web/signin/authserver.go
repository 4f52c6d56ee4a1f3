// This file serves programs that ask for access as agents (OAuth 2.1): it registers them, and exchanges codes that a
// person's consent produced for tokens. The page for that consent is in web/dashboard.

package signin

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// Addresses, without the base path.
const (
	MetadataPath  = "/.well-known/oauth-authorization-server"
	ProtectedPath = "/.well-known/oauth-protected-resource" // of package mcphttp
	AuthorizePath = "/oauth/authorize"
	RegisterPath  = "/oauth/register"
	TokenPath     = "/oauth/token"
	RevokePath    = "/oauth/revoke"
)

// Bounds a minute, from one address and from all of them: of registrations, of wrong requests that are answered in
// detail, and of rows about them. What is right is never counted: a program with a good token must not have to share a
// count with strangers.
const (
	registersEach, registersAll = 10, 60
	wrongEach, rowsOfStrangers  = 10, 100
)

// AuthServerOptions configures a Server. All fields are required.
type AuthServerOptions struct {
	Service *oauth.Service // nil: programs are not admitted this way
	Guard   *httpx.Guard
	MCPPath string // of what is protected, without the base path
	Now     func() time.Time
}

// AuthServer answers programs. It is safe for concurrent use.
type AuthServer struct {
	AuthServerOptions
	registers, wrong, rows *httpx.Failures
}

// NewAuthServer makes a Server.
func NewAuthServer(o AuthServerOptions) *AuthServer {
	return &AuthServer{o, httpx.NewFailures(o.Now, registersEach, registersAll, "too many programs register"),
		httpx.NewFailures(o.Now, wrongEach, 0, "too many wrong requests"),
		httpx.NewFailures(o.Now, wrongEach, rowsOfStrangers, "")}
}

// Offers reports whether programs are admitted this way: never over plain HTTP from another machine, since a code and
// its tokens would be read on the way.
func (s *AuthServer) Offers(r *http.Request) bool {
	return s.Service != nil && (s.Guard.Secured(r) || s.Guard.OnThisMachine(r))
}

// OfferedBy returns the issuer that a program is sent to; "" where none is admitted this way.
func (s *AuthServer) OfferedBy(r *http.Request) string {
	if !s.Offers(r) {
		return ""
	}
	return s.Issuer(r)
}

// Issuer returns this server's name for programs.
func (s *AuthServer) Issuer(r *http.Request) string { return s.Guard.Address(r) }

// ServerAddresses returns this server's addresses, with which a program's request is compared.
func (s *AuthServer) ServerAddresses(r *http.Request) oauth.ServerAddresses {
	return oauth.ServerAddresses{Issuer: s.Issuer(r), Resource: s.Issuer(r) + s.MCPPath}
}

// Routes returns the routes for programs; the page for people is elsewhere.
func (s *AuthServer) Routes() []httpx.Route {
	if s.Service == nil {
		return nil
	}
	body := func(bytes int64) *httpx.BodyLimit {
		return &httpx.BodyLimit{Bytes: bytes, Advice: "a request of a program is shorter", Within: httpx.OpenBodyTime}
	}
	post := func(pattern string, bytes int64, handle httpx.Func) httpx.Route {
		return httpx.Route{Method: http.MethodPost, Pattern: pattern, Agents: true, Handle: s.offered(handle),
			Body: body(bytes)}
	}
	routes := []httpx.Route{
		post(RegisterPath, 16<<10, s.register), post(TokenPath, 8<<10, s.serveToken), post(RevokePath, 8<<10, s.revoke),
	}
	for _, pattern := range []string{MetadataPath, MetadataPath + s.MCPPath} {
		routes = append(routes, httpx.Route{Method: http.MethodGet, Pattern: pattern, Agents: true,
			Handle: s.offered(s.serveMetadata)})
	}
	return routes
}

// Inner returns the path of metadata below the base for the address that RFC 8414 and RFC 9728 give it: the name stands
// before the base path there. "" for every other address.
func (s *AuthServer) Inner(path string) string {
	for _, name := range []string{MetadataPath, ProtectedPath} {
		rest, found := strings.CutPrefix(path, name+s.Guard.BasePath)
		if s.Guard.BasePath != "" && found && (rest == "" || rest == s.MCPPath) {
			return name + rest
		}
	}
	return ""
}

// offered answers only where programs are admitted.
func (s *AuthServer) offered(handle httpx.Func) httpx.Func {
	return func(req *httpx.Request) (httpx.Response, error) {
		if !s.Offers(req.Request) {
			return httpx.Response{}, fault.New(fault.NotFound,
				"programs are let in here over https alone, or on this machine; ask for this address by https")
		}
		return handle(req)
	}
}

// serveMetadata describes this server (RFC 8414).
func (s *AuthServer) serveMetadata(req *httpx.Request) (httpx.Response, error) {
	at := s.Issuer(req.Request)
	return httpx.Response{Value: map[string]any{
		"issuer": at, "authorization_endpoint": at + AuthorizePath, "token_endpoint": at + TokenPath,
		"registration_endpoint": at + RegisterPath, "revocation_endpoint": at + RevokePath,
		"scopes_supported": []string{oauth.Scope}, "response_types_supported": []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          s.Service.Documents.Offered(),
		"protected_resources":                            []string{at + s.MCPPath},
	}}, nil
}

// Browser returns who brings a request of a program. The host of a document is asked within the bounds of registration.
// Nobody is signed in where callers on this machine may read without a token.
func (s *AuthServer) Browser(req *httpx.Request) oauth.Browser {
	b := oauth.Browser{Count: func() error { return s.registers.CountFairly(s.from(req)) }}
	if req.Principal.Via != access.ViaAnonymous {
		who := req.Principal.Actor.Account()
		b.Person = who.Issuer + " " + who.Subject
	}
	return b
}

func (s *AuthServer) register(req *httpx.Request) (httpx.Response, error) {
	body, err := httpx.ReadBody(req, "application/json")
	if err != nil {
		return httpx.Response{}, err
	}
	if err := s.registers.CountFairly(s.from(req)); err != nil {
		return slowDown(err), nil
	}
	made, err := s.Service.Register(req.Context(), req.ID, body)
	if err != nil {
		return s.answerRefusal(req, "", err)
	}
	return httpx.Response{Status: http.StatusCreated, Value: made}, nil
}

func (s *AuthServer) serveToken(req *httpx.Request) (httpx.Response, error) {
	form, err := s.readRequestForm(req)
	if err != nil {
		return s.answerRefusal(req, "", err)
	}
	issued, err := s.Service.Exchange(req.Context(), req.ID, form, s.ServerAddresses(req.Request))
	if err != nil {
		return s.answerRefusal(req, form.Get("client_id"), err)
	}
	return httpx.Response{Value: issued, Header: http.Header{"Pragma": {"no-cache"}}}, nil
}

func (s *AuthServer) revoke(req *httpx.Request) (httpx.Response, error) {
	form, err := s.readRequestForm(req)
	if err == nil {
		err = s.Service.Revoke(req.Context(), req.ID, form)
	}
	if err != nil {
		return s.answerRefusal(req, form.Get("client_id"), err)
	}
	return httpx.Response{Status: http.StatusOK}, nil
}

// readRequestForm reads a program's request.
func (s *AuthServer) readRequestForm(req *httpx.Request) (url.Values, error) {
	form, err := httpx.ReadForm(req)
	if err == nil && len(req.Header.Values("Authorization")) > 0 {
		err = &oauth.Error{Code: "invalid_client", Description: "programs have no secret here"}
	}
	return form, err
}

// answerRefusal answers in the form of OAuth, and records it as far as there is room for rows of strangers.
func (s *AuthServer) answerRefusal(req *httpx.Request, client string, err error) (httpx.Response, error) {
	var why *oauth.Error
	if !errors.As(err, &why) {
		return httpx.Response{}, err
	}
	if counted := s.wrong.Count(s.from(req), nil); counted != nil {
		return slowDown(counted), nil
	}
	if s.rows.Room(s.from(req)) {
		if err := s.Service.Refused(req.Context(), req.ID, client, why); err != nil {
			return httpx.Response{}, err
		}
	}
	status := http.StatusBadRequest
	if why.Code == oauth.UnknownClient { // by which programs know to register anew
		status = http.StatusUnauthorized
	}
	return errorResponse(status, why.Code, why.Description, nil), nil
}

func slowDown(err error) httpx.Response {
	e := fault.From(err)
	return errorResponse(http.StatusTooManyRequests, "temporarily_unavailable", e.Message,
		http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter/time.Second) + 1)}})
}

func errorResponse(status int, code, description string, header http.Header) httpx.Response {
	return httpx.Response{Status: status, Header: header,
		Value: map[string]string{"error": code, "error_description": description}}
}

func (s *AuthServer) from(req *httpx.Request) netip.Addr { return s.Guard.Client(req.Request) }
