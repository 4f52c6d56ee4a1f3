package dashboard

import (
	"net/http"
	"path"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// renderer makes pages.
type renderer struct {
	pages    *pages.Set
	assets   pages.Assets
	base     string // path below which the server is
	settings handler.Settings
	health   *health.Checker
	nav      []pages.NavItem
	buttons  func(next string) []signin.Button // by which people sign in
	env      handler.Env
}

// html answers with a page.
func (h *renderer) html(name string, view any) (handler.Response, error) {
	body, err := h.pages.Render(name, view)
	return handler.Response{Bytes: body, ContentType: "text/html; charset=utf-8", Volatile: true}, err
}

// htmlOr answers with a page, unless there is an error.
func (h *renderer) htmlOr(err error, name string, view any) (handler.Response, error) {
	if err != nil {
		return handler.Response{}, err
	}
	return h.html(name, view)
}

// htmlAgain answers with a page whose form comes back, and why.
func (h *renderer) htmlAgain(why *fault.Error, name string, view any) (handler.Response, error) {
	response, err := h.html(name, view)
	response.Status = why.Code.HTTPStatus()
	return response, err
}

// frame returns the common parts of every page. current is the path of its entry in the navigation.
func (h *renderer) frame(req *handler.Request, title, current string) pages.Page {
	version := h.settings.Version
	if req.Principal.Name() == "" { // strangers need not know what runs
		version = ""
	}
	operates := req.Principal.Scopes.Has(access.Operate)
	var standing pages.Standing
	if req.Principal.Name() != "" {
		standing = h.standing(req.Context())
	}
	return pages.Page{
		Base: h.base, Title: title, Nav: navigationFor(h.nav, operates), Current: current, Who: req.Principal.Name(),
		CanSignOut: req.Principal.Via == access.ViaLogin, CanSignIn: req.Principal.Via == access.ViaAnonymous,
		MayOperate: operates,
		Standing:   standing, Style: h.assets.Style.Name, Icon: h.assets.Icon.Name, Version: version,
		Position: req.Position,
		Scripts:  []string{h.assets.Htmx.Name, h.assets.Live.Name},
	}
}

// navigationFor returns the part of the navigation that a person may see.
func navigationFor(nav []pages.NavItem, operates bool) (out []pages.NavItem) {
	for _, item := range nav {
		if !item.Operate || operates {
			item.Tabs = navigationFor(item.Tabs, operates)
			out = append(out, item)
		}
	}
	return out
}

// asset serves a file by its exact name, which changes with its content.
func (h *renderer) asset(req *handler.Request) (handler.Response, error) {
	a, found := h.assets.Find(req.PathValue("name"))
	if !found {
		return handler.Response{}, handler.NothingHere(h.base)
	}
	return handler.Response{Bytes: a.Content, ContentType: a.ContentType, Header: http.Header{
		"Cache-Control": {"public, max-age=31536000, immutable"},
	}}, nil
}

// problemPage shows an error.
type problemPage struct {
	pages.Page
	Problem handler.Problem
	Attempt string      // address of what is recorded of it, without the base; "" for none
	SignIn  *signInForm // offered where signing in may help
	// Nowhere is the path that leads nowhere, and Guess what of it may be searched for.
	Nowhere, Guess string
	Why            string // what was looked for there; "" if the address is none of ours
}

// Problem renders an error for a person. recorded says that the request id is that of an attempt.
func (h *renderer) Problem(req *handler.Request, p handler.Problem, recorded bool) []byte {
	if req.Pattern == "POST "+guard.SignInPath || strings.HasPrefix(req.Pattern, "GET "+guard.SignInPath+"/") {
		return h.signInAgain(req, p)
	}
	view := problemPage{Page: h.frame(req, p.Title, ""), Problem: p}
	view.Position = "" // an error stays as it is
	view.Attempt = p.Recorded
	if recorded && strings.HasPrefix(req.Pattern, "POST /proposals/") {
		view.Attempt = "/proposals/" + p.RequestID
	}
	if p.Code == fault.NotFound && req.Method == http.MethodGet {
		if view.Nowhere = req.URL.Path; req.Pattern != "" {
			view.Why = p.Detail
		}
		view.Guess = path.Base(req.URL.Path)
	}
	if p.Code == fault.Unauthenticated {
		form := h.signInForm("/")
		view.SignIn = &form
	}
	return h.errorPage(req, "problem", view)
}

// signInAgain returns the page for signing in with what was wrong with what was sent.
func (h *renderer) signInAgain(req *handler.Request, p handler.Problem) []byte {
	view := signInPage{Page: h.frame(req, "Sign in", ""), signInForm: h.signInForm(req.Next)}
	if strings.HasPrefix(req.Pattern, "GET ") {
		view.Missed = p.Detail
	} else {
		view.Failed = p.Detail
	}
	return h.errorPage(req, "signin", view)
}

// signInForm returns the form for signing in, and going on to a page then.
func (h *renderer) signInForm(next string) signInForm {
	next = guard.SafeNext(next)
	return signInForm{FormBase: h.base, Next: next, Buttons: h.buttons(next)}
}

func (h *renderer) errorPage(req *handler.Request, name string, view any) []byte {
	body, err := h.pages.Render(name, view)
	if err != nil {
		h.env.Log.Error("error page not rendered", "request_id", req.ID, "error", err)
		return []byte("<!doctype html><title>Error</title><p>Something went wrong; the log has the details.")
	}
	return body
}

// goTo leads a browser from a form to a page, given without the base path.
func (h *renderer) goTo(page string) handler.Response {
	return handler.Response{Status: http.StatusSeeOther, Header: http.Header{"Location": {h.base + page}}}
}

// moved leads an address that a page had before to the one that it has now.
func (h *renderer) moved(to string) handler.Func {
	return func(*handler.Request) (handler.Response, error) { return h.goTo(to), nil }
}
