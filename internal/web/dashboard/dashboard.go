// Package dashboard serves the pages for people, and the forms on them. It fills the views of internal/web/pages.
package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/live"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/signin"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Reader reads at providers for people; prflow.Reader is one.
type Reader interface {
	ListAt(ctx context.Context, provider, owner, name string) ([]gitprovider.PullRequest, error)
	StatusAt(ctx context.Context, provider, owner, name string, number int) (gitprovider.Status, error)
	ProviderOf(owner, name string) string
	Compare(ctx context.Context, p record.Proposal) (prflow.Comparison, error)
}

// Reviewer acts for people on pull requests that have no pages at a forge; *review.Service implements it. Errors are
// faults.
type Reviewer interface {
	// Reviews reports whether the pull requests of the provider are reviewed here.
	Reviews(provider string) bool
	Show(ctx context.Context, provider string, ref gitprovider.RepoRef, number int) (review.Detail, error)
	// Texts are the contents of files at the head commit, of those that have at most maxBytes.
	Texts(ctx context.Context, provider string, ref gitprovider.RepoRef, head string, paths []string,
		maxBytes int) (map[string]string, error)
	// Do does what a person decides, and records it.
	Do(ctx context.Context, r review.Request) (review.Outcome, error)
	// Refused records a decision that was refused before Do was asked. Its Verb may be empty.
	Refused(ctx context.Context, r review.Request, why error) error
}

// Sessions returns the operator's configuration and schedule of sessions; *session.Service implements it.
type Sessions interface{ Plan() session.Plan }

// Providers holds the pages' access to providers.
type Providers struct {
	Reader   Reader
	Reviewer Reviewer
	Registry *gitprovider.Registry
}

// Options configures a Dashboard. All fields are required.
type Options struct {
	Settings httpx.Settings
	Promote  operation.Operation // opens what a dry run has shown; zero if that is not enabled
	Turns    *httpx.Turns        // of proposals
	Records  views.Records
	People
	Providers Providers
	Policy    func() (policy.Policy, error) // the effective one, or why the configured one cannot be read
	Guard     *httpx.Guard
	SignIn    *signin.SignIn
	Programs  *signin.AuthServer // programs that may be admitted by consent
	Health    *health.Checker
	Hub       *live.Hub
	Toolsets  Toolsets
	Docs      func() (api.Docs, error) // describes the API
	Env       httpx.Env
}

// People holds the operations for people other than reviewing.
type People struct {
	Sessions Sessions
	Acts     []operation.Operation // those with a page that is made from them
}

// Dashboard renders the pages. It is safe for concurrent use.
type Dashboard struct {
	*renderer
	hub       *live.Hub
	turns     *httpx.Turns
	overview  *overview
	proposals *proposalPages
	healthy   *healthPages
	pulls     *pullPages
	sessions  *sessionPages
	audit     *auditPages
	outcomes  *outcomePages
	policy    *policyPage
	signIn    *signInPages
	consent   *consentPages
	pausing   *pausePages
	docs      *docsPages
	sets      []pageSet // with an entry of their own in the navigation, after those that every server has
}

// New makes a Dashboard. An error is a fault in an embedded file.
func New(o Options) (*Dashboard, error) {
	set, err := pages.Load(pages.Shower{Redact: o.Env.Redact, Redaction: o.Env.Redaction, Now: o.Env.Now})
	if err != nil {
		return nil, err
	}
	assets, err := pages.LoadAssets()
	if err != nil {
		return nil, err
	}
	r := &renderer{pages: set, assets: assets, base: o.Guard.BasePath, settings: o.Settings,
		health: o.Health, pauses: o.Records.Pauses, buttons: o.SignIn.Buttons, summary: o.Records.Summary,
		env: o.Env}
	acts, toolsets := actSets(r, o.Acts), o.Toolsets.pages(r, o.Providers.Reader, o.Records.Attempts, o.Acts)
	d := &Dashboard{
		renderer: r, sets: slices.Concat(acts, toolsets), hub: o.Hub, turns: o.Turns,
		proposals: &proposalPages{r, o.Settings, o.Promote, o.Records.Attempts, o.Records.Pulls,
			o.Providers.Reader, o.Policy},
		pulls: &pullPages{r, o.Providers.Reader, o.Providers.Reviewer, o.Records.Attempts, o.Records.Pulls, &seenParts{},
			o.Toolsets.concerns, o.Policy},
		healthy: &healthPages{
			renderer: r, reader: o.Providers.Reader, summary: o.Records.Summary, records: o.Records.Pulls, policy: o.Policy,
			turn: httpx.NewTurns(1),
		},
		sessions: &sessionPages{
			r, o.Sessions, actNamed(o.Acts, session.ActStart), actNamed(o.Acts, session.ActStop), o.Records.Sessions,
			o.Records.Attempts, o.Records.Pulls,
		},
		audit:    &auditPages{r, o.Records.Audit, o.Records.Attempts, o.Records.Pulls, o.Records.Sessions},
		outcomes: &outcomePages{r, o.Records.Summary},
		policy:   &policyPage{r, o.Settings.Tier, o.Policy, operation.Named(o.Acts, places.ActSuggest)},
		signIn:   &signInPages{r, o.Guard, o.SignIn, newTokenPages(r, o.Guard, o.Acts)},
		consent:  newConsentPages(r, o), pausing: newPausePages(r, o.Acts), docs: &docsPages{r, o.Docs},
	}
	d.overview = &overview{
		r, o.Records, d.sessions, o.Toolsets, o.Policy,
	}
	r.nav = navigation(acts, toolsets)
	return d, nil
}

// changesPath is the page of all changes.
const changesPath = "/changes"

// pullPath is the pattern of the page of a pull request.
const pullPath = "/pulls/{provider}/{owner}/{repo}/{number}"

// Routes returns the pages and their forms. They do not belong to the API.
func (d *Dashboard) Routes() []httpx.Route {
	page := func(pattern string, handle httpx.Func) httpx.Route {
		return httpx.Route{Method: "GET", Pattern: pattern, Scope: access.Read, Page: true, Handle: handle}
	}
	follows := func(pattern string, handle httpx.Func) httpx.Route { return page(pattern, d.following(handle)) }
	note := &httpx.BodyLimit{Bytes: 64 << 10, Advice: "say less in the note"}
	// one of 64 KiB fits, every byte escaped
	comment := &httpx.BodyLimit{Bytes: 256 << 10, Advice: "say less in the comment"}
	routes := []httpx.Route{
		follows("/{$}", withQuery(d.overview.showOverview)), follows(changesPath, withQuery(d.proposals.showChangeList)),
		page("/proposals", d.proposals.moved),
		follows("/proposals/{id}", withQuery(d.proposals.showProposal)),
		page(changesPath+"/forges", d.moved(askForgesPath)), page("/pulls", d.moved(changesPath+"?tab=waiting")),
		follows(pullPath, d.pulls.showPull), page("/policy", withQuery(d.policy.showRules)),
		page("/agents", d.moved(sessionsPath)), page("/records", d.moved(auditPath)), page("/settings", d.moved("/policy")),
		follows("/audit", withQuery(d.audit.audit)),
		follows(outcomesPath, withQuery(d.outcomes.show)),
		page("/audit/{row}", withQuery(d.audit.showRow)), page("/audit.jsonl", d.audit.lines), follows(healthPath,
			withQuery(d.healthy.showHealth)),
		page(live.Path, d.hub.Events),
		follows("/sessions", withQuery(d.sessions.showSessions)), follows("/sessions/schedule",
			withQuery(d.sessions.schedule)),
		follows("/sessions/{id}", withQuery(d.sessions.showSession)),
		{
			Method: "POST", Pattern: pullPath + "/review", Scope: access.Review, Page: true, Handle: d.pulls.review,
			Body: comment, Refused: d.pulls.recordRefusedReview,
		},
		{
			Method: "POST", Pattern: "/sessions", Scope: access.Operate, Page: true, Handle: d.sessions.startSession,
			Body: note, Refused: rejected(d.sessions.starts),
		},
		{
			Method: "POST", Pattern: "/sessions/{id}/stop", Scope: access.Operate, Page: true, Handle: d.sessions.stopSession,
			Body: httpx.NoBody(), Refused: rejected(d.sessions.stops),
		},
		{Method: "GET", Pattern: httpx.SignInPath, Page: true, Handle: d.signIn.showSignIn},
		{Method: "GET", Pattern: ownProbePath, Handle: d.signIn.reachable},
		{Method: "GET", Pattern: "/static/{name}", Page: true, Handle: d.asset},
	}
	if d.proposals.promotes.Handle != nil {
		routes = append(routes, httpx.Route{
			Method: "POST", Pattern: "/proposals/{id}/promote", Scope: access.Review, Page: true, Handle: d.proposals.promote,
			Body: &httpx.BodyLimit{Bytes: 4 << 10, Advice: "the form of the page is smaller"}, Turns: d.turns,
			Refused: rejected(d.proposals.promotes),
		})
	}
	if len(d.signIn.people.Providers) > 0 {
		routes = append(routes, httpx.Route{Method: "GET", Pattern: signin.CallbackPath + "{provider}", Page: true,
			Handle: d.signIn.arrive})
	}
	for _, set := range d.sets {
		routes = append(routes, set.routes(follows)...)
	}
	routes = append(routes, d.signIn.tokens.routes()...)
	routes = append(routes, d.consent.routes()...)
	routes = append(routes, d.pausing.routes()...)
	routes = append(routes, d.docs.routes(follows)...)
	routes = append(routes, d.reloads(routes)...)
	// Signing out is the guard's.
	return append(routes, httpx.Route{Method: "GET", Pattern: "/sign-out", Page: true,
		Handle: func(*httpx.Request) (httpx.Response, error) { return d.goTo("/"), nil }})
}

// reloads returns routes for GET of the address of a form, which browsers send on a reload of its answer: they redirect
// to the page that has the form.
func (d *Dashboard) reloads(routes []httpx.Route) (out []httpx.Route) {
	for _, r := range routes {
		twin := func(other httpx.Route) bool { return other.Method == http.MethodGet && other.Pattern == r.Pattern }
		if r.Method != http.MethodPost || slices.ContainsFunc(routes, twin) {
			continue
		}
		out = append(out, httpx.Route{
			Method: http.MethodGet, Pattern: r.Pattern, Scope: access.Read, Page: true,
			Handle: func(req *httpx.Request) (httpx.Response, error) {
				address := req.URL.EscapedPath()
				return d.goTo(address[:strings.LastIndexByte(address, '/')]), nil
			},
		})
	}
	return out
}

// withQuery makes a handler of one that takes what the query says.
func withQuery[Q any](handle func(*httpx.Request, Q) (httpx.Response, error)) httpx.Func {
	return func(req *httpx.Request) (httpx.Response, error) {
		var q Q
		if err := httpx.DecodeQuery(req, &q); err != nil {
			return httpx.Response{}, err
		}
		return handle(req, q)
	}
}

// following makes a handler's page follow changes. It notes the position of the record before the handler reads it, so
// that the page is notified of every later change. If that cannot be read, the page does not follow.
func (d *Dashboard) following(handle httpx.Func) httpx.Func {
	return func(req *httpx.Request) (httpx.Response, error) {
		req.Position = d.hub.Position(record.ShortReads(req.Context()))
		return handle(req)
	}
}

// renderer makes pages.
type renderer struct {
	pages    *pages.Set
	assets   pages.Assets
	base     string // path below which the server is
	settings httpx.Settings
	health   *health.Checker
	pauses   views.Pauses // nil: nothing is ever paused
	nav      []pages.NavItem
	buttons  func(next string) []signin.Button // by which people sign in
	summary  views.Summary
	env      httpx.Env
}

// html answers with a page.
func (h *renderer) html(name string, view any) (httpx.Response, error) {
	body, err := h.pages.Render(name, view)
	return httpx.Response{Bytes: body, ContentType: "text/html; charset=utf-8", Volatile: true}, err
}

// htmlOr answers with a page, unless there is an error.
func (h *renderer) htmlOr(err error, name string, view any) (httpx.Response, error) {
	if err != nil {
		return httpx.Response{}, err
	}
	return h.html(name, view)
}

// htmlAgain answers with a page whose form comes back, and why.
func (h *renderer) htmlAgain(why *fault.Error, name string, view any) (httpx.Response, error) {
	response, err := h.html(name, view)
	response.Status = why.Code.HTTPStatus()
	return response, err
}

// frame returns the common parts of every page. current is the path of its entry in the navigation.
func (h *renderer) frame(req *httpx.Request, title, current string) pages.Page {
	version := h.settings.Version
	if req.Principal.Name() == "" { // strangers need not know what runs
		version = ""
	}
	operates := req.Principal.Scopes.Has(access.Operate)
	var standing pages.ServerStatus
	var counts record.FrameCounts
	var paused []pages.Pause
	nav := navigationFor(h.nav, operates)
	if req.Principal.Name() != "" {
		standing, counts = h.standing(req.Context()), h.countPlaces(req.Context(), nav)
		if counts.Paused > 0 {
			paused = h.paused(req)
		}
	}
	return pages.Page{
		Base: h.base, Title: title, Nav: nav, Current: current, Who: req.Principal.Name(), Counts: counts,
		MayReview:  req.Principal.Scopes.Has(access.Review),
		CanSignOut: req.Principal.Via == access.ViaLogin, CanSignIn: req.Principal.Via == access.ViaAnonymous,
		MayOperate: operates,
		Standing:   standing, Paused: paused, Style: h.assets.Style.Name, Icon: h.assets.Icon.Name,
		Theme:   h.assets.Theme.Name,
		Version: version, Position: req.Position,
		Scripts: [2]string{h.assets.Htmx.Name, h.assets.Live.Name},
	}
}

// countPlaces notes beside the places what waits there and what runs, and returns all counts. What cannot be read has
// no count: the page itself says why.
func (h *renderer) countPlaces(ctx context.Context, nav []pages.NavItem) record.FrameCounts {
	counts, err := h.summary.FrameCounts(ctx)
	if err != nil {
		return record.FrameCounts{}
	}
	for i := range nav {
		switch nav[i].Path {
		case changesPath:
			nav[i].Count, nav[i].Counted = counts.Tabs[record.TabWaiting], "waiting"
		case sessionsPath:
			nav[i].Count, nav[i].Counted = counts.Running, "running"
		}
	}
	return counts
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
func (h *renderer) asset(req *httpx.Request) (httpx.Response, error) {
	a, found := h.assets.Find(req.PathValue("name"))
	if !found {
		return httpx.Response{}, httpx.NothingHere(h.base)
	}
	return httpx.Response{Bytes: a.Content, ContentType: a.ContentType, Packed: a.Packed(), Header: http.Header{
		"Cache-Control": {"public, max-age=31536000, immutable"},
	}}, nil
}

// problemPage shows an error.
type problemPage struct {
	pages.Page
	Problem httpx.Problem
	Attempt string      // address of what is recorded of it, without the base; "" for none
	SignIn  *signInForm // offered where signing in may help
	May     string      // in words for people, why they may not do it; "" where Problem says it
	Kept    string      // what was written in the form that was sent; "" for nothing
	// Nowhere is the path that leads nowhere, and Guess what of it may be searched for.
	Nowhere, Guess string
	Why            string // what was looked for there; "" if the address is none of ours
}

// Problem renders an error for a person. recorded says that the request id is that of an attempt.
func (h *renderer) Problem(req *httpx.Request, p httpx.Problem, recorded bool) []byte {
	if req.Pattern == "POST "+httpx.SignInPath || strings.HasPrefix(req.Pattern, "GET "+httpx.SignInPath+"/") {
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
	if req.Lacks != "" && req.Principal.Via != access.ViaAnonymous {
		view.May = mayNot(req)
	}
	if p.Code == fault.Unauthenticated {
		next, kept := unsent(req)
		form := h.signInForm(next)
		view.SignIn, view.Kept = &form, kept
	}
	return h.errorPage(req, "problem", view)
}

// mayNot says in words for people what they may not do, and who can change that.
func mayNot(req *httpx.Request) string {
	deed := "review changes"
	if req.Lacks == access.Operate {
		deed = "operate this server"
	}
	for place, act := range map[string]string{
		"/tokens": "manage tokens", "/sessions": "start and stop sessions", "/scripts": "run scripts",
		"/connections": "cut agents off", "/proposals": "open dry runs", "/deployments": "roll back",
	} {
		if strings.HasPrefix(req.URL.Path, place) {
			deed = act
		}
	}
	return "You may look, but not " + deed + ". Ask somebody who operates this server for the scope " +
		string(req.Lacks) + "."
}

// maxKeptWords bounds the address that carries words through signing in, in bytes as its form sends it. Longer words
// are shown, to be copied.
const maxKeptWords = 1900

// unsent returns where a person goes on who has to sign in again, and what they had written in a form. That of a change
// is in its form again there.
func unsent(req *httpx.Request) (next, kept string) {
	at, reviews := strings.CutSuffix(req.URL.EscapedPath(), "/review")
	if req.Method != http.MethodPost || req.Pattern == "" {
		return "/", ""
	}
	form, err := httpx.ReadForm(req)
	if err != nil {
		return at, ""
	}
	kept = strings.ReplaceAll(cmp.Or(form.Get("comment"), form.Get("note")), "\r\n", "\n")
	if !reviews {
		return at, kept // GET leads from there to the page that has the form
	}
	q := shownOf(form)
	query := url.Values{"say": {form.Get("action")}}
	for name, value := range map[string]string{"words": kept, "view": q.View, "on": q.On} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Part > 1 {
		query.Set("part", strconv.Itoa(q.Part))
	}
	next = at + "?" + query.Encode()
	if len(url.QueryEscape(next)) > maxKeptWords || doneText(form.Get("action")) == "" {
		return at, kept
	}
	return next, kept
}

// signInAgain returns the page for signing in with what was wrong with what was sent.
func (h *renderer) signInAgain(req *httpx.Request, p httpx.Problem) []byte {
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
	next = httpx.SafeNext(next)
	return signInForm{FormBase: h.base, Next: next, Buttons: h.buttons(next)}
}

func (h *renderer) errorPage(req *httpx.Request, name string, view any) []byte {
	body, err := h.pages.Render(name, view)
	if err != nil {
		h.env.Log.Error("error page not rendered", "request_id", req.ID, "error", err)
		return []byte("<!doctype html><title>Error</title><p>Something went wrong; the log has the details.")
	}
	return body
}

// goTo leads a browser from a form to a page, given without the base path.
func (h *renderer) goTo(page string) httpx.Response {
	return httpx.Response{Status: http.StatusSeeOther, Header: http.Header{"Location": {h.base + page}}}
}

// moved leads an address that a page had before to the one that it has now.
func (h *renderer) moved(to string) httpx.Func {
	return func(*httpx.Request) (httpx.Response, error) { return h.goTo(to), nil }
}
