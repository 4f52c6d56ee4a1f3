package dashboard

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// signInPages let people sign in.
type signInPages struct {
	*renderer
	guard  *guard.Guard
	people *signin.SignIn
	tokens *tokenPages
}

// signInPage is the page for signing in.
type signInPage struct {
	pages.Page
	signInForm
	Note     string // why it is asked for again
	SignedIn string // who is signed in already
	Script   string // name of the asset that goes on at the name that this browser has; "" for none
	Again    string // where it goes on there, without the base
}

// signInForm is the form.
type signInForm struct {
	FormBase string
	Next     string // where to go then, without the base
	Failed   string // why it comes back
	Buttons  []signin.Button
	Missed   string // why signing in by a provider failed
}

// arrivedPage is the page for a browser that comes back from a provider.
type arrivedPage struct {
	pages.Page
	Next     string
	SignedIn string
}

// arrive signs in a person that a provider has recognised. The answer is a page that goes on by itself: the request
// comes from another site, so that the cookie that it sets, which is strict, would not be sent with a redirect.
func (h *signInPages) arrive(req *handler.Request) (handler.Response, error) {
	arrived, err := h.people.Finish(req)
	if err != nil {
		return handler.Response{}, err
	}
	if arrived.Elsewhere != "" {
		arrived.Header.Set("Location", arrived.Elsewhere)
		return handler.Response{Status: http.StatusSeeOther, Header: arrived.Header}, nil
	}
	response, err := h.html("arrived", arrivedPage{h.frame(req, "Signed in", ""), arrived.Next, arrived.Who.Name()})
	response.Header = arrived.Header
	return response, err
}

// ownPage leads a browser that signs in at loopback to a name of its own, or lets the person stay.
type ownPage struct {
	pages.Page
	Code, Next string
	Own        string // the address at the new name; "" where there is none
	Why        string // there is none
	Host       string // that the browser has asked for
	Script     string
}

// move shows the way to the browser's own name. A script takes it if the name can be reached; else the page says what
// it costs to stay.
func (h *signInPages) move(req *handler.Request, code, next string) (handler.Response, error) {
	view := ownPage{Page: h.frame(req, "Sign in", ""), Code: code, Next: next, Why: h.guard.Own.Why, Host: req.Host,
		Script: h.assets.Own.Name}
	at := h.guard.OwnAddress(req.Request)
	if at != "" {
		view.Own = at + guard.SignInPath + "?" + url.Values{"code": {code}, "next": {next}}.Encode()
	}
	response, err := h.html("own", view)
	h.mayProbe(&response, "http://*.localhost"+portOf(req.Host))
	return response, err
}

// mayProbe lets the script of a page ask whether names below localhost can be reached.
func (h *signInPages) mayProbe(response *handler.Response, names string) {
	response.Header = http.Header{}
	guard.Secure(response.Header)
	response.Header.Set("Content-Security-Policy", strings.Replace(response.Header.Get("Content-Security-Policy"),
		"connect-src 'self'", "connect-src 'self' "+names, 1))
}

func portOf(host string) string {
	if _, port, err := net.SplitHostPort(host); err == nil {
		return ":" + port
	}
	return ""
}

// ownProbePath answers a page of another host of this server that wants to know whether a name can be reached.
const ownProbePath = guard.SignInPath + "/reachable"

func (h *signInPages) reachable(*handler.Request) (handler.Response, error) {
	header := http.Header{}
	guard.Secure(header)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return handler.Response{Status: http.StatusNoContent, Header: header}, nil
}

// oncePage is the page of a one-time address.
type oncePage struct {
	pages.Page
	Code   string
	Next   string // where to go then, below the base
	Script string // name of the asset that presses the button
}

// maxCode is more than a one-time code has, in bytes.
const maxCode = 100

// signInPage shows the form. next is where to go then, a path below the base. With a one-time code it shows a button
// that sends the code, which a script presses as soon as somebody sees the page: asking for the page alone uses nothing
// up, so that a program which looks at addresses ahead does no harm.
func (h *signInPages) show(req *handler.Request) (handler.Response, error) {
	next, code := guard.SafeNext(req.URL.Query().Get("next")), req.URL.Query().Get("code")
	who, err := h.guard.Identify(req)
	req.Principal = who
	if code != "" && len(code) <= maxCode {
		if err == nil && who.Via == access.ViaLogin {
			return h.goTo(next), nil
		}
		if h.guard.Moves(req.Request) {
			return h.move(req, code, next)
		}
		return h.html("once", oncePage{h.frame(req, "Sign in", ""), code, next, h.assets.Once.Name})
	}
	if h.guard.AtOwnName(req.Request) && req.URL.Query().Has("again") {
		// The browser was sent here from the shared host, which is another site, and has kept a strict cookie back.
		return h.html("arrived", arrivedPage{Page: h.frame(req, "Going on", ""), Next: next})
	}
	view := signInPage{
		Page: h.frame(req, "Sign in", ""), signInForm: h.signInForm(next),
		SignedIn: who.Name(),
	}
	if err != nil && len(h.guard.LoginCookies(req.Request)) > 0 {
		view.Note = fault.From(err).Message
	}
	if err == nil || !h.guard.Own.Names || !h.guard.Moves(req.Request) {
		return h.html("signin", view)
	}
	view.Script = h.assets.Own.Name
	view.Again = guard.SignInPath + "?" + url.Values{"again": {"1"}, "next": {next}}.Encode()
	response, err := h.html("signin", view)
	h.mayProbe(&response, "http://*.localhost"+portOf(req.Host))
	return response, err
}
