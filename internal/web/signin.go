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

// Bounds of wrong tokens and codes a minute: from one address and from all of them.
const (
	wrongSignInsEach = 10
	wrongSignInsAll  = 200
)

// signInForm is what is sent to sign in: a token or, from the page of a one-time address, a code.
type signInForm struct {
	token, code string
	next        string // where a browser is led then
	browser     bool   // it was a form
}

// signIn exchanges a token or a one-time code for a session cookie. A form is sent on to the page of this server that it names,
// or to the first.
func (s *Server) signIn(c *call) (answer, error) {
	form, err := readSignIn(c)
	if err != nil {
		return answer{}, err
	}
	var id string
	var who access.Principal
	if form.code != "" {
		id, who, err = s.Access.SignInOnce(c.Context(), form.code)
	} else {
		id, who, err = s.Access.SignIn(c.Context(), form.token)
	}
	if err != nil {
		if fault.CodeOf(err) == fault.Unauthenticated {
			err = s.signIns.count(s.Network.client(c.Request), err)
		}
		return answer{}, err
	}
	c.who = who
	header := http.Header{"Set-Cookie": {s.cookie(c, id, int(access.SessionLife.Seconds()))}}
	if form.browser {
		header.Set("Location", s.Network.BasePath+form.next)
		return answer{status: http.StatusSeeOther, header: header}, nil
	}
	return answer{value: identityOf(who), header: header}, nil
}

func readSignIn(c *call) (signInForm, error) {
	if c.Header.Get("Content-Type") != "application/json" {
		form, err := readForm(c)
		if err != nil || len(form["token"])+len(form["code"]) != 1 {
			return signInForm{}, errors.Join(err, fault.New(fault.InvalidArgument, "the form must have the field token, once"))
		}
		return signInForm{token: form.Get("token"), code: form.Get("code"), next: safeNext(form.Get("next")), browser: true}, nil
	}
	body, err := readBody(c, "application/json")
	if err != nil {
		return signInForm{}, err
	}
	var q SignInRequest
	if violations := strictjson.Decode(body, &q, strictjson.Options{What: "body"}); len(violations) > 0 {
		// repeats nothing of it
		return signInForm{}, fault.New(fault.InvalidArgument, "the body must be {\"token\": \"...\"} and nothing else")
	}
	return signInForm{token: q.Token}, nil
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
