package web

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/record"
)

// admit finds out who calls and whether they may. A caller whom we know and who may not propose or decide leaves an attempt on the
// record; a stranger does not, since strangers must not be able to fill it.
func (s *Server) admit(c *call, r route) error {
	if r.scope == "" {
		return nil
	}
	who, err := s.identify(c)
	if err != nil {
		return err
	}
	c.who = who
	if who.Scopes.Has(r.scope) {
		return nil
	}
	e := s.lacks(who, r.scope)
	if r.proposes {
		s.flow(c).Reject(c.Context(), caller(c), e.Code, e.Message)
	}
	if r.reviews {
		return s.Reviewer.Refused(c.Context(), reviewOf(c), e)
	}
	if r.operates != "" {
		return s.Sessions.Refused(c.Context(), s.operator(c), r.operates, e)
	}
	return e
}

// lacks says which scope is missing and, to whom has shown nothing, how to get it.
func (s *Server) lacks(who access.Principal, scope access.Scope) *fault.Error {
	e := fault.New(fault.Forbidden, "this needs the scope %s; %s has %s", scope, who.Name, who.Scopes)
	if who.Via == access.ViaAnonymous {
		wanted := access.Scopes{access.Propose, access.Review, access.Read}
		if !wanted.Has(scope) {
			wanted = append(wanted, scope)
		}
		e.Message += fmt.Sprintf(": whoever changes something has to say who they are. Make a token with `claudeops token create --name "+
			"NAME --max-tier %d --scopes %s`, and sign in with it at %s%s", int(s.Tier), wanted, s.Network.BasePath, signInPath)
	}
	return e
}

// identify recognises the caller by the first of these that is there: a bearer token, a session, a user that a trusted
// proxy names, loopback. One that is there and no good is not passed over.
func (s *Server) identify(c *call) (access.Principal, error) {
	if given := c.Header.Values("Authorization"); len(given) > 0 {
		scheme, secret, _ := strings.Cut(given[0], " ")
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return access.Principal{}, fault.New(fault.Unauthenticated, "Authorization must be `Bearer` and a token, once")
		}
		return s.Access.Bearer(c.Context(), strings.TrimSpace(secret))
	}
	if cookies := c.CookiesNamed(cookieName); len(cookies) == 1 {
		return s.Access.Session(c.Context(), cookies[0].Value)
	} else if len(cookies) > 1 { // another site of this domain may have planted one
		return access.Principal{}, fault.New(fault.Unauthenticated, "there are several session cookies; remove them and sign in again")
	}
	if users := s.proxyUsers(c.Request); len(users) > 0 {
		user, err := proxyUser(users)
		if err != nil {
			return access.Principal{}, err
		}
		return s.Access.Proxied(c.Context(), user)
	}
	if s.Network.local(c.Request) {
		return s.Access.Anonymous()
	}
	return access.Principal{}, access.NeedsToken()
}

// caller is who calls, for the record.
func caller(c *call) operation.Caller {
	door := record.DoorREST
	if c.page {
		door = record.DoorWeb
	}
	return operation.Caller{Door: door, Name: c.who.Name}
}

// flow is the use case at the caller's ceiling.
func (s *Server) flow(c *call) Flow { return s.Flow(c.who.Ceiling) }
