package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// signInPages let people sign in.
type signInPages struct {
	*renderer
	guard  *httpx.Guard
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
func (h *signInPages) arrive(req *httpx.Request) (httpx.Response, error) {
	arrived, err := h.people.Finish(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if arrived.Elsewhere != "" {
		arrived.Header.Set("Location", arrived.Elsewhere)
		return httpx.Response{Status: http.StatusSeeOther, Header: arrived.Header}, nil
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
func (h *signInPages) move(req *httpx.Request, code, next string) (httpx.Response, error) {
	view := ownPage{Page: h.frame(req, "Sign in", ""), Code: code, Next: next, Why: h.guard.Own.Why, Host: req.Host,
		Script: h.assets.Own.Name}
	at := h.guard.OwnAddress(req.Request)
	if at != "" {
		view.Own = at + httpx.SignInPath + "?" + url.Values{"code": {code}, "next": {next}}.Encode()
	}
	response, err := h.html("own", view)
	h.mayProbe(&response, "http://*.localhost"+portOf(req.Host))
	return response, err
}

// mayProbe lets the script of a page ask whether names below localhost can be reached.
func (h *signInPages) mayProbe(response *httpx.Response, names string) {
	response.Header = http.Header{}
	httpx.Secure(response.Header)
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
const ownProbePath = httpx.SignInPath + "/reachable"

func (h *signInPages) reachable(*httpx.Request) (httpx.Response, error) {
	header := http.Header{}
	httpx.Secure(header)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return httpx.Response{Status: http.StatusNoContent, Header: header}, nil
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

// showSignIn shows the form. next is where to go then, a path below the base. With a one-time code it shows a button
// that sends the code, which a script presses as soon as somebody sees the page: asking for the page alone uses nothing
// up, so that a program which looks at addresses ahead does no harm.
func (h *signInPages) showSignIn(req *httpx.Request) (httpx.Response, error) {
	next, code := httpx.SafeNext(req.URL.Query().Get("next")), req.URL.Query().Get("code")
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
	view.Again = httpx.SignInPath + "?" + url.Values{"again": {"1"}, "next": {next}}.Encode()
	response, err := h.html("signin", view)
	h.mayProbe(&response, "http://*.localhost"+portOf(req.Host))
	return response, err
}

// Where the two buttons of the page send its form.
const (
	allowPath = signin.AuthorizePath + "/allow"
	denyPath  = signin.AuthorizePath + "/deny"
)

// consentCookie ties the consent form to the browser it was shown to.
const consentCookie = "claudeops_consent"

// consentLife limits how long the page stays valid, in seconds.
const consentLife = 15 * 60

// shownName is the field with the name that the page shows of the program: a document may have another one by the time
// that the form comes.
const shownName = "shown_name"

// consentPages ask a person whether a program may come in as an agent.
type consentPages struct {
	*renderer
	guard       *httpx.Guard
	programs    *signin.AuthServer
	allow, deny operation.Operation
}

func newConsentPages(r *renderer, o Options) *consentPages {
	h := &consentPages{renderer: r, guard: o.Guard, programs: o.Programs}
	if o.Programs.Service != nil {
		acts := o.Programs.Service.Operations()
		h.allow, h.deny = operation.Named(acts, oauth.OpAllow), operation.Named(acts, oauth.OpDeny)
	}
	return h
}

// consentPage is the page that asks.
type consentPage struct {
	pages.Page
	Client, Answer string
	Domain         string // the host that vouches for the program; "" for none
	Far            bool   // the browser is sent to another machine
	Fields         []hiddenField
	Seal           string
	May            bool // this person may admit programs
	Tiers          []option
	Repos          string // as they were sent, if the form comes back
	Failed         string // why it comes back
	DryRun         bool   // of the server
	Chosen         bool   // a dry run, by the person
	Days           int    // how long it is good at most
	Bounded        string // see access.Gatekeeper.Bounded
	Allow, Deny    string
}

// hiddenField is a hidden field of a form.
type hiddenField struct{ Name, Value string }

func (h *consentPages) routes() []httpx.Route {
	if h.programs.Service == nil {
		return nil
	}
	form := &httpx.BodyLimit{Bytes: 16 << 10, Advice: "name fewer repositories"}
	return []httpx.Route{
		{Method: http.MethodGet, Pattern: signin.AuthorizePath, Scope: access.Read, Page: true, Handle: h.showConsent},
		{Method: http.MethodPost, Pattern: allowPath, Scope: access.Operate, Page: true, Handle: h.letIn, Body: form,
			Refused: rejected(h.allow)},
		{Method: http.MethodPost, Pattern: denyPath, Scope: access.Read, Page: true, Handle: h.keepOut, Body: form,
			Refused: rejected(h.deny)},
	}
}

// showConsent shows what a program wants. A person sees the page each time, whatever they have allowed before.
func (h *consentPages) showConsent(req *httpx.Request) (httpx.Response, error) {
	given, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return httpx.Response{}, fault.New(fault.InvalidArgument, "the address is malformed; begin again")
	}
	wanted, done, err := h.parseAuthRequest(req, given)
	switch fault.CodeOf(err) {
	case fault.InvalidArgument, fault.UpstreamError, fault.LimitReached:
		why := &oauth.Error{Code: "invalid_request", Description: fault.From(err).Message}
		err = errors.Join(err, h.programs.Service.RefusedFor(req.Context(), req.ID, req.Principal.Actor,
			given.Get("client_id"), why))
	}
	if err != nil || done != nil {
		return *orNone(done), err
	}
	return h.consentForm(req, given, wanted, "", gitprovider.TierObserve)
}

// parseAuthRequest reads what a program wants. done is the answer where that is sent back to the program at once.
func (h *consentPages) parseAuthRequest(req *httpx.Request, given url.Values) (oauth.Request, *httpx.Response, error) {
	if !h.programs.Offers(req.Request) {
		return oauth.Request{}, nil, fault.New(fault.NotFound,
			"programs are let in here over https alone, or on this machine; ask for this address by https")
	}
	wanted, err := h.programs.Service.Read(req.Context(), given, h.programs.ServerAddresses(req.Request),
		h.programs.Browser(req))
	var why *oauth.Error
	if errors.As(err, &why) {
		if oauth.IsFar(wanted.Redirect) {
			return wanted, nil, fault.New(fault.InvalidArgument, "%s asks for what is not given here: %s; begin again in it",
				wanted.Client.Name, why)
		}
		return wanted, sendBack(
				wanted.Refusal(why),
			), h.programs.Service.RefusedFor(
				req.Context(),
				req.ID,
				req.Principal.Actor,
				wanted.Client.ID,
				why,
			)
	}
	return wanted, nil, err
}

func (h *consentPages) consentForm(req *httpx.Request, given url.Values, wanted oauth.Request, failed string,
	tier gitprovider.Tier) (httpx.Response, error) {
	key, cookie := h.browserKey(req)
	view := consentPage{
		Page: h.frame(req, "Let a program in?", ""), Client: wanted.Client.Name, Answer: oauth.Place(wanted.Redirect),
		Domain: access.ClientDomain(wanted.Client.ID), Far: oauth.IsFar(wanted.Redirect),
		May: req.Principal.Scopes.Has(access.Operate), Repos: given.Get("repos"), Failed: failed,
		DryRun: h.settings.Rules().DryRun, Chosen: given.Has("dry_run"),
		Days: int(oauth.GrantLife.Hours() / 24), Bounded: h.rightsBound(h.guard, req), Allow: allowPath, Deny: denyPath,
	}
	view.Position, view.Theme = "", "" // no script stands beside what lets a program in
	for _, name := range oauth.Fields() {
		for _, value := range given[name] {
			view.Fields = append(view.Fields, hiddenField{name, value})
		}
	}
	view.Fields = append(view.Fields, hiddenField{shownName, wanted.Client.Name})
	given = maps.Clone(given)
	given.Set(shownName, wanted.Client.Name)
	view.Seal = h.seal(key, req, given)
	for at := gitprovider.TierObserve; at <= h.programs.Service.Highest(req.Principal.Ceiling); at++ {
		view.Tiers = append(view.Tiers, option{at.String(), tierMeaning(at), at == tier})
	}
	response, err := h.html("consent", view)
	response.Header = http.Header{}
	httpx.Secure(response.Header)
	// Browsers ask this of the address that the answer to a form leads to, too.
	response.Header.Set("Content-Security-Policy", strings.Replace(response.Header.Get("Content-Security-Policy"),
		"form-action 'self'", "form-action 'self' "+oauth.FormAction(wanted.Redirect), 1))
	if cookie != "" {
		response.Header.Set("Set-Cookie", cookie)
	}
	return response, err
}

// tierMeaning returns a tier in the words of the page.
func tierMeaning(t gitprovider.Tier) string {
	return map[gitprovider.Tier]string{
		gitprovider.TierObserve:     "Tier 1: look, and propose nothing",
		gitprovider.TierInvestigate: "Tier 2: propose changes of at most 3 files",
		gitprovider.TierRemediate:   "Tier 3: propose changes of any number of files",
	}[t]
}

// browserKey returns the browser's key, and the cookie that sets one where it has none.
func (h *consentPages) browserKey(req *httpx.Request) (key, cookie string) {
	if kept := req.CookiesNamed(consentCookie); len(kept) == 1 && len(kept[0].Value) >= len(rand.Text()) {
		return kept[0].Value, ""
	}
	key = rand.Text()
	c := http.Cookie{Name: consentCookie, Value: key, Path: h.base + signin.AuthorizePath, MaxAge: consentLife,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.guard.Secured(req.Request)}
	return key, c.String()
}

// seal returns the value that the form has to bring back: it cannot be made without the browser's key, and is valid
// only for this person and this request.
func (h *consentPages) seal(key string, req *httpx.Request, given url.Values) string {
	mac := hmac.New(sha256.New, []byte(key))
	wanted := url.Values{"": {req.Principal.Name()}}
	for _, name := range append(oauth.Fields(), shownName) {
		wanted[name] = given[name]
	}
	for _, login := range h.guard.LoginCookies(req.Request) {
		wanted[" "] = append(wanted[" "], login.Value)
	}
	mac.Write([]byte(wanted.Encode()))
	return hex.EncodeToString(mac.Sum(nil))
}

// sent returns the form of the page with what the program wants. An error is recorded.
func (h *consentPages) sent(req *httpx.Request, act operation.Operation) (form url.Values, wanted oauth.Request,
	done *httpx.Response, err error) {
	form, err = httpx.ReadForm(req)
	if err == nil {
		key, fresh := h.browserKey(req)
		if fresh != "" || !hmac.Equal([]byte(h.seal(key, req, form)), []byte(form.Get("seal"))) {
			err = fault.New(fault.Forbidden, "this form was not made for this browser and this person, or is too old; "+
				"begin again in the program that sent you")
		}
	}
	if err == nil {
		wanted, done, err = h.parseAuthRequest(req, form)
	}
	if err == nil && done == nil && wanted.Client.Name != form.Get(shownName) {
		err = fault.New(fault.Forbidden, "the program calls itself otherwise now; begin again in the program that sent you")
	}
	if err != nil {
		err = act.Reject(req.Context(), req.Call(nil), err)
	}
	return form, wanted, done, err
}

// letIn gives the program a code, and sends the browser back with it.
func (h *consentPages) letIn(req *httpx.Request) (httpx.Response, error) {
	form, wanted, done, err := h.sent(req, h.allow)
	if err != nil || done != nil {
		return *orNone(done), err
	}
	tier, known := gitprovider.ParseTier(form.Get("tier"))
	if !known {
		tier = 0
	}
	call := req.Call(nil)
	call.Input = oauth.Allow{Request: wanted, Tier: int(tier),
		Repos: reposIn(form.Get("repos")), DryRun: form.Has("dry_run")}
	out, err := h.allow.Handle(req.Context(), call)
	if err != nil {
		code := fault.CodeOf(err)
		if code != fault.InvalidArgument && code != fault.Forbidden || !httpx.PrefersHTML(req.Request) {
			return httpx.Response{}, err
		}
		response, pageErr := h.consentForm(req, form, wanted, h.env.Message(fault.From(err).Message), tier)
		response.Status = code.HTTPStatus()
		return response, pageErr
	}
	return *sendBack(wanted.Allowed(out.(oauth.Code).Code)), nil
}

// keepOut sends the browser back without a code.
func (h *consentPages) keepOut(req *httpx.Request) (httpx.Response, error) {
	_, wanted, done, err := h.sent(req, h.deny)
	if err != nil || done != nil {
		return *orNone(done), err
	}
	call := req.Call(nil)
	call.Input = oauth.Deny{Request: wanted}
	if _, err := h.deny.Handle(req.Context(), call); err != nil {
		return httpx.Response{}, err
	}
	return *sendBack(wanted.Denied()), nil
}

// sendBack sends a browser to the program that it came from.
func sendBack(address string) *httpx.Response {
	return &httpx.Response{Status: http.StatusSeeOther, Header: http.Header{"Location": {address}}}
}

func orNone(r *httpx.Response) *httpx.Response {
	if r == nil {
		return &httpx.Response{}
	}
	return r
}
