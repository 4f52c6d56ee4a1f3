// This file decides which requests are admitted: it runs before every handler of internal/web. It checks the host and
// the origin of a request, recognises who makes it, asks for the scope of the route, and signs browsers in and out.

package httpx

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
)

// GuardOptions configures a Guard. All fields are required.
type GuardOptions struct {
	Network Network
	Access  *access.Gatekeeper
	Tier    gitprovider.Tier // of this server
	Now     func() time.Time
}

// Guard admits requests, or refuses them. It is safe for concurrent use.
type Guard struct {
	Network
	access  *access.Gatekeeper
	tier    gitprovider.Tier
	origins *http.CrossOriginProtection
	signIns *Failures
}

// Bounds of wrong tokens and codes a minute: from one address and from all of them.
const (
	wrongSignInsEach = 10
	wrongSignInsAll  = 200
)

// NewGuard makes a Guard.
func NewGuard(o GuardOptions) *Guard {
	return &Guard{
		Network: o.Network, access: o.Access, tier: o.Tier, origins: http.NewCrossOriginProtection(),
		signIns: NewFailures(o.Now, wrongSignInsEach, wrongSignInsAll, "too many attempts to sign in"),
	}
}

// Check refuses what no route may see: requests for another host, and unsafe ones from another site.
func (g *Guard) Check(r *http.Request) error {
	if !g.serves(r.Host) {
		return fault.New(fault.Forbidden, "this server does not answer for the host that was asked for; "+
			"the operator may list it in CLAUDEOPS_HOSTS")
	}
	return g.checkOrigin(r)
}

// Secure sets the headers that every answer has. Scripts and styles come from this server as files or not at all.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Under no-referrer, browsers send the forms of our own pages with the origin null, and over plain HTTP nothing else
	// tells them from those of other sites.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// Admit identifies the caller and checks whether they may call. The refusal of a known caller is recorded where the
// route changes something; that of a stranger is not, since strangers must not be able to fill the record.
func (g *Guard) Admit(req *Request, route Route) error {
	if route.Scope == "" {
		return nil
	}
	who, err := g.Identify(req)
	if err != nil {
		return err
	}
	req.Principal = who
	if who.Scopes.Has(route.Scope) {
		req.Recheck = func(ctx context.Context) error { return g.recheck(ctx, req, who, route.Scope) }
		return nil
	}
	req.Lacks = route.Scope
	e := g.lacks(who, route.Scope)
	if route.Refused != nil {
		return route.Refused(req, e)
	}
	return e
}

// recheck recognises the caller once more; see operation.Caller.
func (g *Guard) recheck(ctx context.Context, req *Request, was access.Principal, scope access.Scope) error {
	now, err := g.identify(ctx, req, g.access.LoginNow)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return fault.Wrap(err, fault.Unauthenticated,
			"%s was let in when the call began, and is not any more: the token was revoked or has expired, or "+
				"the login has ended; nothing was done", was.Name())
	}
	if err != nil {
		return err
	}
	return now.Still(was, scope)
}

// MayRead reports whether the caller may read, for routes that answer strangers with less. Invalid credentials are an
// error, missing ones are not.
func (g *Guard) MayRead(req *Request) (bool, error) {
	who, err := g.Identify(req)
	shows := len(req.Header.Values("Authorization")) > 0 || len(g.LoginCookies(req.Request)) > 0 ||
		len(g.proxyUsers(req.Request)) > 0
	if err != nil && !shows && fault.CodeOf(err) == fault.Unauthenticated {
		return false, nil
	}
	req.Principal = who
	return err == nil && who.Scopes.Has(access.Read), err
}

// lacks says which scope is missing and, to callers without credentials, how to get it.
func (g *Guard) lacks(who access.Principal, scope access.Scope) *fault.Error {
	e := fault.New(fault.Forbidden, "this needs the scope %s; %s has %s", scope, who.Name(), who.Scopes)
	if who.Via == access.ViaAnonymous {
		wanted := access.Scopes{access.Propose, access.Review, access.Read}
		if !wanted.Has(scope) {
			wanted = append(wanted, scope)
		}
		e.Message += fmt.Sprintf(
			": a request that changes something must say who makes it. Make a token with `claudeops token create --name "+
				"NAME --max-tier %d --scopes %s`, and sign in with it at %s%s", int(g.tier), wanted, g.BasePath, SignInPath)
	}
	return e
}

// Identify recognises the caller by the first of these that is there: a bearer token, a session, a user that a trusted
// proxy names, loopback. An invalid one is not skipped.
func (g *Guard) Identify(req *Request) (access.Principal, error) {
	return g.identify(req.Context(), req, g.access.Login)
}

// identify recognises the caller; login says whose a session is.
func (g *Guard) identify(
	ctx context.Context, req *Request, login func(ctx context.Context, id string) (access.Principal, error),
) (access.Principal, error) {
	if given := req.Header.Values("Authorization"); len(given) > 0 {
		scheme, secret, _ := strings.Cut(given[0], " ")
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return access.Principal{}, fault.New(fault.Unauthenticated, "Authorization must be `Bearer` and a token, once")
		}
		return g.access.Bearer(ctx, strings.TrimSpace(secret))
	}
	if cookies := g.LoginCookies(req.Request); len(cookies) == 1 {
		return login(ctx, cookies[0].Value)
	} else if len(cookies) > 1 { // another site of this domain may have planted one
		return access.Principal{}, fault.New(fault.Unauthenticated,
			"there are several session cookies; remove them and sign in again")
	}
	if users := g.proxyUsers(req.Request); len(users) > 0 {
		user, err := proxyUser(users)
		if err != nil {
			return access.Principal{}, err
		}
		return g.access.Proxied(user)
	}
	if g.local(req.Request) {
		return g.access.Anonymous()
	}
	return access.Principal{}, access.NeedsToken()
}

// maxUser bounds the name that a proxy gives, in bytes.
const maxUser = 200

// proxyUsers returns the values of the header in which a trusted proxy names the user; none from anybody else.
func (g *Guard) proxyUsers(r *http.Request) []string {
	if g.ProxyUserHeader == "" || !g.trusts(remote(r)) {
		return nil
	}
	return r.Header.Values(g.ProxyUserHeader)
}

// proxyUser returns the one name among the values; unauthenticated if it is none that the record can have.
func proxyUser(values []string) (string, error) {
	user := strings.TrimSpace(values[0])
	// A comma is where a proxy has joined two headers, one of which may be the caller's own.
	hidden := func(r rune) bool { return r == ',' || r == utf8.RuneError || !unicode.IsPrint(r) }
	if len(values) > 1 || user == "" || len(values[0]) > maxUser || strings.ContainsFunc(user, hidden) {
		return "", fault.New(fault.Unauthenticated,
			"the proxy must name one user, in 1 to %d bytes of visible characters without a comma; "+
				"it has named none that can be recorded", maxUser)
	}
	return user, nil
}
