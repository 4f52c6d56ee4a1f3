package dashboard

import (
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
}

// signInForm is the form.
type signInForm struct {
	FormBase string
	Next     string // where to go then, without the base
	Failed   string // why it comes back
	Buttons  []signin.Button
	Missed   string // why signing in by a provider came to nothing
}

// arrivedPage is what a browser sees that comes back from a provider.
type arrivedPage struct {
	pages.Page
	Next     string
	SignedIn string
}

// arrive signs in whom a provider has recognised. The answer is a page that goes on by itself: the request comes from
// another site, so that the cookie that it sets, which is strict, would not be sent with a redirect.
func (h *signInPages) arrive(req *handler.Request) (handler.Response, error) {
	arrived, err := h.people.Finish(req)
	if err != nil {
		return handler.Response{}, err
	}
	response, err := h.html("arrived", arrivedPage{h.frame(req, "Signed in", ""), arrived.Next, arrived.Who.Name})
	response.Header = arrived.Header
	return response, err
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
		return h.html("once", oncePage{h.frame(req, "Sign in", ""), code, next, h.assets.Once.Name})
	}
	view := signInPage{
		Page: h.frame(req, "Sign in", ""), signInForm: h.signInForm(next),
		SignedIn: who.Name,
	}
	if _, cookieErr := req.Cookie(guard.CookieName); err != nil && cookieErr == nil {
		view.Note = fault.From(err).Message
	}
	return h.html("signin", view)
}
