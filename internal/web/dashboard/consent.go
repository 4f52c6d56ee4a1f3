package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/authserver"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Where the two buttons of the page send its form.
const (
	allowPath = authserver.AuthorizePath + "/allow"
	denyPath  = authserver.AuthorizePath + "/deny"
)

// consentCookie ties the consent form to the browser it was shown to.
const consentCookie = "claudeops_consent"

// consentLife limits how long the page stays valid, in seconds.
const consentLife = 15 * 60

// consentPages ask a person whether a program may come in as an agent.
type consentPages struct {
	*renderer
	guard       *guard.Guard
	programs    *authserver.Server
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
	Far            bool // the browser is sent to another machine
	Fields         []field
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

// field is a hidden field of a form.
type field struct{ Name, Value string }

func (h *consentPages) routes() []handler.Route {
	if h.programs.Service == nil {
		return nil
	}
	form := &handler.BodyLimit{Bytes: 16 << 10, Advice: "name fewer repositories"}
	return []handler.Route{
		{Method: http.MethodGet, Pattern: authserver.AuthorizePath, Scope: access.Read, Page: true, Handle: h.ask},
		{Method: http.MethodPost, Pattern: allowPath, Scope: access.Operate, Page: true, Handle: h.letIn, Body: form,
			Refused: rejected(h.allow)},
		{Method: http.MethodPost, Pattern: denyPath, Scope: access.Read, Page: true, Handle: h.keepOut, Body: form,
			Refused: rejected(h.deny)},
	}
}

// ask shows what a program wants. A person sees the page each time, whatever they have allowed before.
func (h *consentPages) ask(req *handler.Request) (handler.Response, error) {
	given, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return handler.Response{}, fault.New(fault.InvalidArgument, "the address is malformed; begin again")
	}
	wanted, done, err := h.read(req, given)
	if fault.CodeOf(err) == fault.InvalidArgument {
		why := &oauth.Error{Code: "invalid_request", Description: fault.From(err).Message}
		err = errors.Join(err, h.programs.Service.RefusedFor(req.Context(), req.ID, req.Principal.Actor,
			given.Get("client_id"), why))
	}
	if err != nil || done != nil {
		return *orNone(done), err
	}
	return h.page(req, given, wanted, "", gitprovider.TierObserve)
}

// read reads what a program wants. done is the answer where that is sent back to the program at once.
func (h *consentPages) read(req *handler.Request, given url.Values) (oauth.Request, *handler.Response, error) {
	if !h.programs.Offers(req.Request) {
		return oauth.Request{}, nil, fault.New(fault.NotFound,
			"programs are let in here over https alone, or on this machine; ask for this address by https")
	}
	wanted, err := h.programs.Service.Read(req.Context(), given, h.programs.Here(req.Request))
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

func (h *consentPages) page(req *handler.Request, given url.Values, wanted oauth.Request, failed string,
	tier gitprovider.Tier) (handler.Response, error) {
	key, cookie := h.key(req)
	view := consentPage{
		Page: h.frame(req, "Let a program in?", ""), Client: wanted.Client.Name, Answer: oauth.Place(wanted.Redirect),
		Far: oauth.IsFar(wanted.Redirect), Seal: h.seal(key, req, given),
		May: req.Principal.Scopes.Has(access.Operate), Repos: given.Get("repos"), Failed: failed,
		DryRun: h.settings.Rules().DryRun, Chosen: given.Has("dry_run"),
		Days: int(oauth.GrantLife.Hours() / 24), Bounded: h.bounded(h.guard, req), Allow: allowPath, Deny: denyPath,
	}
	view.Scripts, view.Position = nil, ""
	for _, name := range oauth.Fields() {
		for _, value := range given[name] {
			view.Fields = append(view.Fields, field{name, value})
		}
	}
	for at := gitprovider.TierObserve; at <= h.programs.Service.Highest(req.Principal.Ceiling); at++ {
		view.Tiers = append(view.Tiers, option{at.String(), tierMeaning(at), at == tier})
	}
	response, err := h.html("consent", view)
	response.Header = http.Header{}
	guard.Secure(response.Header)
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

// key returns the browser's key, and the cookie that sets one where it has none.
func (h *consentPages) key(req *handler.Request) (key, cookie string) {
	if kept := req.CookiesNamed(consentCookie); len(kept) == 1 && len(kept[0].Value) >= len(rand.Text()) {
		return kept[0].Value, ""
	}
	key = rand.Text()
	c := http.Cookie{Name: consentCookie, Value: key, Path: h.base + authserver.AuthorizePath, MaxAge: consentLife,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.guard.Secured(req.Request)}
	return key, c.String()
}

// seal returns the value that the form has to bring back: it cannot be made without the browser's key, and is valid
// only for this person and this request.
func (h *consentPages) seal(key string, req *handler.Request, given url.Values) string {
	mac := hmac.New(sha256.New, []byte(key))
	wanted := url.Values{"": {req.Principal.Name()}}
	for _, name := range oauth.Fields() {
		wanted[name] = given[name]
	}
	for _, login := range h.guard.LoginCookies(req.Request) {
		wanted[" "] = append(wanted[" "], login.Value)
	}
	mac.Write([]byte(wanted.Encode()))
	return hex.EncodeToString(mac.Sum(nil))
}

// sent returns the form of the page with what the program wants. An error is recorded.
func (h *consentPages) sent(req *handler.Request, act operation.Operation) (form url.Values, wanted oauth.Request,
	done *handler.Response, err error) {
	form, err = handler.ReadForm(req)
	if err == nil {
		key, fresh := h.key(req)
		if fresh != "" || !hmac.Equal([]byte(h.seal(key, req, form)), []byte(form.Get("seal"))) {
			err = fault.New(fault.Forbidden, "this form was not made for this browser and this person, or is too old; "+
				"begin again in the program that sent you")
		}
	}
	if err == nil {
		wanted, done, err = h.read(req, form)
	}
	if err != nil {
		err = act.Reject(req.Context(), req.Call(nil), err)
	}
	return form, wanted, done, err
}

// letIn gives the program a code, and sends the browser back with it.
func (h *consentPages) letIn(req *handler.Request) (handler.Response, error) {
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
		if code != fault.InvalidArgument && code != fault.Forbidden || !handler.PrefersHTML(req.Request) {
			return handler.Response{}, err
		}
		response, pageErr := h.page(req, form, wanted, h.env.Message(fault.From(err).Message), tier)
		response.Status = code.HTTPStatus()
		return response, pageErr
	}
	return *sendBack(wanted.Allowed(out.(oauth.Code).Code)), nil
}

// keepOut sends the browser back without a code.
func (h *consentPages) keepOut(req *handler.Request) (handler.Response, error) {
	_, wanted, done, err := h.sent(req, h.deny)
	if err != nil || done != nil {
		return *orNone(done), err
	}
	call := req.Call(nil)
	call.Input = oauth.Deny{Request: wanted}
	if _, err := h.deny.Handle(req.Context(), call); err != nil {
		return handler.Response{}, err
	}
	return *sendBack(wanted.Denied()), nil
}

// sendBack sends a browser to the program that it came from.
func sendBack(address string) *handler.Response {
	return &handler.Response{Status: http.StatusSeeOther, Header: http.Header{"Location": {address}}}
}

func orNone(r *handler.Response) *handler.Response {
	if r == nil {
		return &handler.Response{}
	}
	return r
}
