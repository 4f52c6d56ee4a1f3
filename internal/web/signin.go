package web

import (
	"errors"
	"net/http"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// cookieName is that of the cookie with the session id.
const cookieName = "claudeops_session"

// SignInRequest is the body of a sign-in; a form with the same field does as well.
type SignInRequest struct {
	Token string `json:"token" required:"true"`
}

// Identity says who a caller is.
type Identity struct {
	Name    string         `json:"name"`
	Via     access.Via     `json:"via" doc:"token, session, proxy or anonymous"`
	MaxTier int            `json:"max_tier" doc:"The lower one of this and the server's tier holds"`
	Scopes  []access.Scope `json:"scopes"`
}

// signIn exchanges a token for a session cookie. A form is sent on to the page of this server that it names, or to the first.
func (s *Server) signIn(c *call) (answer, error) {
	if err := s.signIns.take(s.Network.client(c.Request)); err != nil {
		return answer{}, err
	}
	isForm := c.Header.Get("Content-Type") != "application/json"
	secret, next, err := s.signInSecret(c, isForm)
	if err != nil {
		return answer{}, err
	}
	id, who, err := s.Access.SignIn(c.Context(), secret)
	if err != nil {
		return answer{}, err
	}
	c.who = who
	header := http.Header{"Set-Cookie": {s.cookie(c, id, int(access.SessionLife.Seconds()))}}
	if isForm {
		header.Set("Location", s.Network.BasePath+next)
		return answer{status: http.StatusSeeOther, header: header}, nil
	}
	return answer{value: identityOf(who), header: header}, nil
}

func (s *Server) signInSecret(c *call, isForm bool) (secret, next string, err error) {
	if isForm {
		form, err := readForm(c)
		if err != nil || len(form["token"]) != 1 {
			return "", "", errors.Join(err, fault.New(fault.InvalidArgument, "the form must have the field token, once"))
		}
		return form.Get("token"), safeNext(form.Get("next")), nil
	}
	body, err := readBody(c, "application/json")
	if err != nil {
		return "", "", err
	}
	var q SignInRequest
	if violations := strictjson.Decode(body, &q, strictjson.Options{What: "body"}); len(violations) > 0 {
		// repeats nothing of it
		return "", "", fault.New(fault.InvalidArgument, "the body must be {\"token\": \"...\"} and nothing else")
	}
	return q.Token, "", nil
}

// signOut ends the session of the browser, whatever state it is in.
func (s *Server) signOut(c *call) (answer, error) {
	for _, cookie := range c.CookiesNamed(cookieName) {
		if err := s.Access.SignOut(c.Context(), cookie.Value); err != nil {
			return answer{}, err
		}
	}
	a := answer{status: http.StatusNoContent, header: http.Header{"Set-Cookie": {s.cookie(c, "", -1)}}}
	if prefersHTML(c.Request) {
		a.status = http.StatusSeeOther
		a.header.Set("Location", s.Network.BasePath+signInPath)
	}
	return a, nil
}

// cookie is the session cookie. SameSite=Strict keeps other sites from using it; its path keeps what else the host serves
// from being sent it.
func (s *Server) cookie(c *call, id string, maxAge int) string {
	cookie := http.Cookie{
		Name: cookieName, Value: id, Path: s.Network.BasePath + "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.Network.overTLS(c.Request),
	}
	return cookie.String()
}

func identityOf(who access.Principal) Identity {
	return Identity{Name: who.Name, Via: who.Via, MaxTier: int(who.Ceiling), Scopes: append([]access.Scope{}, who.Scopes...)}
}

func (s *Server) whoAmI(c *call) (answer, error) { return answer{value: identityOf(c.who)}, nil }
