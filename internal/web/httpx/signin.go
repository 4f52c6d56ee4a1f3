package httpx

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// SignInPath is the address of the page for signing in, without the base path.
const SignInPath = "/sign-in"

// CookieName is the name of the cookie with the session id, over plain HTTP.
const CookieName = "claudeops_session"

// cookieName has a prefix over TLS, by which browsers take the cookie from this host alone. That of a host needs the
// path "/", which would show the cookie to whatever else the host serves beside the base path.
func (g *Guard) cookieName(r *http.Request) string {
	switch {
	case !g.overTLS(r):
		return CookieName
	case g.BasePath == "":
		return "__Host-" + CookieName
	}
	return "__Secure-" + CookieName
}

// LoginCookies returns the cookies with a session id that a request carries.
func (g *Guard) LoginCookies(r *http.Request) []*http.Cookie { return r.CookiesNamed(g.cookieName(r)) }

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

// signInForm is a submitted sign-in: a token or, from the page of a one-time address, a code.
type signInForm struct {
	token, code string
	next        string // where a browser is led then
	browser     bool   // it was a form
	stays       bool   // the person wants to go on at this host, whatever that costs
}

// signIn exchanges a token or a one-time code for a session cookie. A form is sent on to the page of this server that
// it names, or to the first.
func (g *Guard) signIn(req *Request) (Response, error) {
	form, err := readSignIn(req)
	if err != nil {
		return Response{}, err
	}
	req.Next = form.next
	var id string
	var who access.Principal
	if form.code != "" {
		id, who, err = g.access.SignInOnce(req.Context(), form.code, BrowserOf(req))
	} else {
		id, who, err = g.access.SignIn(req.Context(), form.token, BrowserOf(req))
	}
	if err != nil {
		if fault.CodeOf(err) == fault.Unauthenticated {
			err = g.Wrong(req, err)
		}
		return Response{}, err
	}
	req.Principal = who
	if form.browser && !form.stays && g.Moves(req.Request) {
		return g.moveOn(id, form.next)
	}
	header := http.Header{"Set-Cookie": {g.Cookie(req, id)}}
	if form.browser {
		header.Set("Location", g.BasePath+form.next)
		return Response{Status: http.StatusSeeOther, Header: header}, nil
	}
	return Response{Value: IdentityOf(who), Header: header}, nil
}

// moveOn sends a browser that has signed in to the page on which it goes on at a name of its own.
func (g *Guard) moveOn(id, next string) (Response, error) {
	at, err := g.HandOver(id, next)
	if err != nil {
		return Response{}, err
	}
	return Response{Status: http.StatusSeeOther, Header: http.Header{"Location": {at}}}, nil
}

// HandOver returns the address, below this host, at which a login goes on at a name of the browser's own.
func (g *Guard) HandOver(id, next string) (address string, err error) {
	code, err := g.access.HandOver(id)
	return g.BasePath + SignInPath + "?" + url.Values{"code": {code}, "next": {next}}.Encode(), err
}

func readSignIn(req *Request) (signInForm, error) {
	if req.Header.Get("Content-Type") != "application/json" {
		form, err := ReadForm(req)
		if err != nil || len(form["token"])+len(form["code"]) != 1 {
			return signInForm{}, errors.Join(err, fault.New(fault.InvalidArgument, "the form must have the field token, once"))
		}
		return signInForm{token: form.Get("token"), code: form.Get("code"), next: SafeNext(form.Get("next")),
			browser: true, stays: form.Has("stay")}, nil
	}
	body, err := ReadBody(req, "application/json")
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
func (g *Guard) signOut(req *Request) (Response, error) {
	for _, cookie := range g.LoginCookies(req.Request) {
		if err := g.access.SignOut(req.Context(), cookie.Value); err != nil {
			return Response{}, err
		}
	}
	a := Response{Status: http.StatusNoContent, Header: http.Header{"Set-Cookie": {g.cookie(req, "", -1)}}}
	if PrefersHTML(req.Request) {
		a.Status = http.StatusSeeOther
		a.Header.Set("Location", g.BasePath+SignInPath)
	}
	return a, nil
}

// Bounded is access.Gatekeeper.Bounded.
func (g *Guard) Bounded(ctx context.Context, who record.Actor) (string, error) {
	return g.access.Bounded(ctx, who)
}

// Wrong counts a failed sign-in. It returns limit_reached if there were too many, else err.
func (g *Guard) Wrong(req *Request, err error) error {
	return g.signIns.Count(g.Client(req.Request), err)
}

// Full returns limit_reached if too many sign-ins from the address of a caller have failed already.
func (g *Guard) Full(req *Request) error { return g.signIns.Full(g.Client(req.Request)) }

// Secured reports whether the browser speaks TLS, to us or to a trusted proxy.
func (g *Guard) Secured(r *http.Request) bool { return g.overTLS(r) }

// maxBrowser bounds what a browser calls itself, in runes.
const maxBrowser = 200

// BrowserOf returns the browser's name for itself, for the list of logins.
func BrowserOf(req *Request) string {
	return textscan.Clean(req.Header.Get("User-Agent"), maxBrowser)
}

// Cookie returns the session cookie of a login.
func (g *Guard) Cookie(req *Request, id string) string {
	return g.cookie(req, id, int(access.LoginLife.Seconds()))
}

// cookie returns the session cookie. SameSite=Strict keeps other sites from using it; its path keeps what else the host
// serves from being sent it.
func (g *Guard) cookie(req *Request, id string, maxAge int) string {
	cookie := http.Cookie{
		Name: g.cookieName(req.Request), Value: id, Path: g.BasePath + "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.overTLS(req.Request),
	}
	return cookie.String()
}

// IdentityOf says who it is.
func IdentityOf(who access.Principal) Identity {
	return Identity{Name: who.Name(), Via: who.Via, MaxTier: int(who.Ceiling),
		Scopes: append([]access.Scope{}, who.Scopes...)}
}

// maxNext bounds the address to go on to after signing in, in bytes.
const maxNext = 2000

// SafeNext returns the address of one of our pages, without the base path, as it was given; "/" for everything else,
// above all for what a browser would take for another site or for a path outside the base.
func SafeNext(next string) string {
	odd := func(r rune) bool { return r == '\\' || unicode.IsControl(r) || unicode.IsSpace(r) }
	if len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.ContainsFunc(next, odd) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" ||
		path.Clean(u.Path) != u.Path || strings.ContainsFunc(u.Path, odd) || u.Path == SignInPath ||
		strings.HasPrefix(u.Path, SignInPath+"/") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}

// Routes returns the routes for signing in and out.
func (g *Guard) Routes() []Route {
	return []Route{
		{
			Method: "POST", Pattern: SignInPath, Handle: g.signIn,
			Body: &BodyLimit{Bytes: 4 << 10, Advice: "a token is shorter", Within: OpenBodyTime},
			Doc: Doc{
				ID: "signIn", Body: SignInRequest{}, Answers: OK(Identity{}),
				Summary:     "Exchange a token for a session cookie",
				Description: "For browsers. A form with the field token does as well and is sent on to a page of this server (303).",
			},
		},
		{
			Method: "POST", Pattern: "/sign-out", Handle: g.signOut, Body: NoBody(),
			Doc: Doc{ID: "signOut", Answers: map[int]any{http.StatusNoContent: nil}, Summary: "End the session"},
		},
	}
}

// failureWindow is the time over which wrong credentials are counted, and failuresKept how many addresses are
// remembered.
const (
	failureWindow = time.Minute
	failuresKept  = 1000
)

// Failures counts wrong credentials by address, in windows of a fixed length. An address of IPv6 stands for its /64,
// the network of one subscriber. Only wrong credentials are refused: right ones are always accepted. Otherwise
// strangers could lock out their holder by sending wrong ones from the same address. Credentials are too long to be
// guessed at any rate of attempts.
type Failures struct {
	now     func() time.Time
	message string // to callers with too many failures
	each    int    // from one address
	all     int    // from all of them; 0 for any number

	mu    sync.Mutex
	began time.Time
	total int
	by    map[netip.Addr]int
}

// NewFailures makes Failures whose refusals say this, and from where.
func NewFailures(now func() time.Time, each, all int, said string) *Failures {
	return &Failures{now: now, message: said, each: each, all: all, by: map[netip.Addr]int{}}
}

// Count counts a wrong credential. It is limit_reached if too many came from the address, or from all, else err.
func (f *Failures) Count(from netip.Addr, err error) error { return f.countFailure(from, err, false) }

// CountFairly also counts attempts that may be right: once too many came from all addresses together, only addresses
// that were already counted in this window have to wait. Strangers elsewhere lock no one out.
func (f *Failures) CountFairly(from netip.Addr) error { return f.countFailure(from, nil, true) }

func (f *Failures) countFailure(from netip.Addr, err error, fairly bool) error {
	from = Subscriber(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roll()
	_, known := f.by[from]
	first := fairly && !known && len(f.by) < failuresKept
	switch {
	case f.by[from] >= f.each:
		return f.tooManyError("came from this address")
	case f.all > 0 && f.total >= f.all && !first:
		return f.tooManyError("come from many addresses")
	}
	f.add(from)
	return err
}

// Full returns limit_reached if too many wrong credentials came from an address already. It is called before work that
// only callers with right credentials may cause.
func (f *Failures) Full(from netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.roll(); f.by[Subscriber(from)] >= f.each {
		return f.tooManyError("came from this address")
	}
	return nil
}

// Room takes a place among those that both bounds leave; ok is false if there is none.
func (f *Failures) Room(from netip.Addr) (ok bool) {
	from = Subscriber(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.roll(); f.by[from] >= f.each || f.all > 0 && f.total >= f.all {
		return false
	}
	f.add(from)
	return true
}

// roll begins a new window if the last one is over.
func (f *Failures) roll() {
	if now := f.now(); now.Sub(f.began) >= failureWindow || now.Before(f.began) {
		f.began, f.total = now, 0
		clear(f.by)
	}
}

func (f *Failures) add(from netip.Addr) {
	f.total++
	if _, known := f.by[from]; known || len(f.by) < failuresKept {
		f.by[from]++
	}
}

func (f *Failures) tooManyError(where string) error {
	e := fault.New(fault.LimitReached, "%s %s; wait a minute", f.message, where)
	e.RetryAfter = f.began.Add(failureWindow).Sub(f.now())
	return e
}

// Subscriber returns the address that stands for all addresses of its subscriber.
func Subscriber(from netip.Addr) netip.Addr {
	if network, err := from.Prefix(64); from.Is6() && err == nil {
		return network.Addr()
	}
	return from
}
