package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Addresses of the two pages: of agents' tokens, and of those for REST and sign-in.
const (
	tokensPath       = "/tokens"
	peopleTokensPath = tokensPath + "/people"
)

// tokenPages list tokens, make them and revoke them: agents' on one page, all others on another.
type tokenPages struct {
	*renderer
	guard             *httpx.Guard
	all, make, revoke operation.Operation
}

func newTokenPages(r *renderer, g *httpx.Guard, acts []operation.Operation) *tokenPages {
	return &tokenPages{r, g, operation.Named(acts, "list_tokens"), operation.Named(acts, "create_token"),
		operation.Named(acts, "revoke_token")}
}

// tokensPage is one of the two pages.
type tokensPage struct {
	pages.Page
	Agents      bool // it is the one of agents' tokens
	Good, Ended []credentials.TokenEntry
	Form        tokenForm
	Made        *madeToken // the one that was just made; nil for none
	Revoked     string     // name of the one that was just revoked
	sortable               // of Good
}

// tokenForm makes a token.
type tokenForm struct {
	FormBase, Path    string
	Agents            bool
	Tiers, Scopes     []option
	Name, Repos, Days string // as they were sent, if the form comes back
	DryRun, ReadOnly  bool
	Failed            string // why it comes back; "" for a form that was not sent
	Bounded           string // see access.Gatekeeper.Bounded
}

// madeToken is a new token with its secret, which this page alone shows.
type madeToken struct {
	Name, Secret string
	Variable     string // that clients read an agent's from
	Clients      []clientLines
	Problem      string // why there are no clients
}

// clientLines configure a client for this server. They hold no secret.
type clientLines struct{ Name, Command, File, Text string }

func (h *tokenPages) routes() []httpx.Route {
	form := &httpx.BodyLimit{Bytes: 16 << 10, Advice: "name fewer repositories"}
	route := func(method, pattern string, handle httpx.Func) httpx.Route {
		return httpx.Route{Method: method, Pattern: pattern, Scope: access.Operate, Page: true, Handle: handle}
	}
	posted := func(pattern string, act operation.Operation, handle httpx.Func) httpx.Route {
		r := route(http.MethodPost, pattern, handle)
		r.Body, r.Refused = form, rejected(act)
		return r
	}
	of := func(agents bool, handle func(*httpx.Request, bool) (httpx.Response, error)) httpx.Func {
		return func(req *httpx.Request) (httpx.Response, error) { return handle(req, agents) }
	}
	return []httpx.Route{
		route(http.MethodGet, tokensPath, of(true, h.showTokens)), posted(tokensPath, h.make, of(true, h.createToken)),
		route(http.MethodGet, peopleTokensPath, of(false, h.showTokens)), posted(peopleTokensPath, h.make, of(false,
			h.createToken)),
		route(http.MethodGet, tokensPath+"/{id}/revoke", h.moved(tokensPath)),
		posted(tokensPath+"/{id}/revoke", h.revoke, h.revokeToken),
	}
}

func (h *tokenPages) showTokens(req *httpx.Request, agents bool) (httpx.Response, error) {
	var q struct {
		Revoked string `json:"revoked,omitempty" maxLength:"100"`
		Sort    string `json:"sort,omitempty" enum:"name,-name,tier,-tier,made,-made,expires,-expires,used,-used"`
	}
	if err := httpx.DecodeQuery(req, &q); err != nil {
		return httpx.Response{}, err
	}
	view, err := h.loadPage(req, agents)
	if err != nil {
		return httpx.Response{}, err
	}
	for _, t := range view.Ended {
		if t.ID == q.Revoked {
			view.Revoked = t.Name
		}
	}
	return h.html("tokens", view)
}

// blank returns the page without tokens, with an empty form.
func (h *tokenPages) blank(req *httpx.Request, agents bool) tokensPage {
	title, path := "Tokens", peopleTokensPath
	if agents {
		title, path = "Agent tokens", tokensPath
	}
	view := tokensPage{Page: h.frame(req, title, path), Agents: agents}
	view.Form = tokenForm{FormBase: h.base, Path: path, Agents: agents, Days: strconv.Itoa(credentials.DefaultTokenDays)}
	view.Form.Bounded = h.rightsBound(h.guard, req)
	view.Form.offer(req.Principal, gitprovider.TierObserve, access.Scopes{access.Read})
	return view
}

// offer sets what a person may grant; tier and scopes are those that are chosen.
func (f *tokenForm) offer(who access.Principal, tier gitprovider.Tier, scopes access.Scopes) {
	f.Tiers, f.Scopes = nil, nil
	for at := gitprovider.TierObserve; at <= min(who.Ceiling, gitprovider.TierRemediate); at++ {
		f.Tiers = append(f.Tiers, tierOption(at, tier))
	}
	meaning := map[access.Scope]string{
		access.Read: "look at everything", access.Propose: "propose changes",
		access.Review:  "review and merge pull requests, open dry runs",
		access.Operate: "start and stop sessions, run scripts, make tokens",
	}
	for _, scope := range who.Scopes {
		f.Scopes = append(f.Scopes, option{string(scope), string(scope) + ": " + meaning[scope], scopes.Has(scope)})
	}
}

func (h *tokenPages) loadPage(req *httpx.Request, agents bool) (tokensPage, error) {
	view := h.blank(req, agents)
	all, err := h.entries(req)
	for _, t := range all {
		switch {
		case t.Agent != agents:
		case t.RevokedAt == nil && (t.ExpiresAt == nil || h.env.Now().Before(*t.ExpiresAt)):
			view.Good = append(view.Good, t)
		default:
			view.Ended = append(view.Ended, t)
		}
	}
	if err == nil {
		view.sortable, err = sortRows(req.URL.Query(), "made", tokenColumns(), view.Good)
	}
	return view, err
}

func tokenColumns() []column[credentials.TokenEntry] {
	type entry = credentials.TokenEntry
	return []column[entry]{
		{name: "Name", key: "name", compare: func(a, b entry) int { return compareNames(a.Name, b.Name) }},
		{name: "Highest tier", key: "tier", largest: true, compare: func(a, b entry) int { return a.MaxTier - b.MaxTier }},
		{name: "Made", key: "made", class: "wide", compare: func(a, b entry) int { return a.CreatedAt.Compare(b.CreatedAt) }},
		{name: "Expires", key: "expires", compare: compareExpiry},
		{name: "Last used", key: "used", largest: true, compare: func(a, b entry) int {
			return compareTimes(a.UsedAt, b.UsedAt)
		}},
		{name: "Revoke", hidden: true},
	}
}

// compareExpiry has the token that ends first before the others, and those without an end after them.
func compareExpiry(a, b credentials.TokenEntry) int {
	if a.ExpiresAt == nil || b.ExpiresAt == nil {
		return -compareTimes(a.ExpiresAt, b.ExpiresAt)
	}
	return compareTimes(a.ExpiresAt, b.ExpiresAt)
}

// rightsBound says what bounds the rights of tokens that this person makes; see access.Gatekeeper.Bounded.
func (r *renderer) rightsBound(g *httpx.Guard, req *httpx.Request) string {
	text, err := g.Bounded(req.Context(), req.Principal.Actor)
	if err != nil {
		r.env.Log.Warn("it is not known whether a provider can be asked about a person", "error", err)
	}
	return text
}

func (h *tokenPages) entries(req *httpx.Request) ([]credentials.TokenEntry, error) {
	all, err := h.all.Handle(req.Context(), req.Call([]byte("{}")))
	if err != nil {
		return nil, err
	}
	return all.(credentials.TokenList).Tokens, nil
}

// createToken makes a token. The answer is the page that shows its secret, once: it is never led on to, and nothing
// keeps it.
func (h *tokenPages) createToken(req *httpx.Request, agents bool) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
	if err != nil {
		return httpx.Response{}, h.make.Reject(req.Context(), req.Call(nil), err)
	}
	out, err := callOperation(req, h.make, wantedToken(form, agents))
	if err != nil {
		return h.sendBack(req, form, agents, err)
	}
	view, err := h.loadPage(req, agents)
	if err != nil { // it exists all the same, and its secret could not be shown again
		view = h.blank(req, agents)
	}
	view.Position, view.Theme = "", "" // no script stands beside a secret
	view.Made = h.newMadeToken(req, out.(credentials.TokenMade))
	response, err := h.html("tokens", view)
	response.Status = http.StatusCreated
	return response, err
}

// wantedToken returns the token that a form asks for, as create_token takes it. create_token refuses values that cannot
// be read.
func wantedToken(form url.Values, agents bool) map[string]any {
	tier, known := gitprovider.ParseTier(form.Get("tier"))
	if !known {
		tier = 0
	}
	wanted := map[string]any{"name": strings.TrimSpace(form.Get("name")), "max_tier": tier}
	if given := strings.TrimSpace(form.Get("days")); given != "" {
		days, err := strconv.Atoi(given)
		if err != nil {
			days = 0
		}
		wanted["expires_in_days"] = days
	}
	if !agents {
		wanted["scopes"] = append([]string{}, form["scope"]...)
		return wanted
	}
	wanted["agent"], wanted["dry_run"], wanted["read_only"] = true, form.Has("dry_run"), form.Has("read_only")
	if repos := reposIn(form.Get("repos")); len(repos) > 0 {
		wanted["repos"] = repos
	}
	return wanted
}

// reposIn returns the repositories that a field names.
func reposIn(text string) []string {
	apart := func(r rune) bool { return r == ',' || r == ' ' || r == '\r' || r == '\n' || r == '\t' }
	return strings.FieldsFunc(text, apart)
}

// newMadeToken returns a new token with the configuration of its agent's client.
func (h *tokenPages) newMadeToken(req *httpx.Request, t credentials.TokenMade) *madeToken {
	out := &madeToken{Name: t.Name, Secret: t.Token}
	if !t.Agent {
		return out
	}
	out.Variable = mcpconfig.TokenVariable
	at, err := mcpconfig.Address(cmp.Or(h.settings.PublicURL, h.guard.Address(req.Request)))
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	for _, f := range mcpconfig.AddressForms() {
		lines := clientLines{Name: f.Name, File: f.File, Text: f.Text(at)}
		if words := f.Add(at); words != nil {
			lines.Command = mcpconfig.ShellLine(words)
		}
		out.Clients = append(out.Clients, lines)
	}
	return out
}

func (h *tokenPages) sendBack(req *httpx.Request, form url.Values, agents bool, why error) (httpx.Response, error) {
	view, err := h.loadPage(req, agents)
	if err != nil || !httpx.PrefersHTML(req.Request) {
		return httpx.Response{}, why
	}
	var chosen access.Scopes
	for _, scope := range form["scope"] {
		chosen = append(chosen, access.Scope(scope))
	}
	tier, _ := gitprovider.ParseTier(form.Get("tier"))
	view.Form.offer(req.Principal, tier, chosen)
	e := fault.From(why)
	view.Form.Name, view.Form.Repos, view.Form.Days = form.Get("name"), form.Get("repos"), form.Get("days")
	view.Form.DryRun, view.Form.ReadOnly = form.Has("dry_run"), form.Has("read_only")
	view.Form.Failed = h.env.Message(e.Message)
	return h.htmlAgain(e, "tokens", view)
}

// revokeToken revokes a token, and leads back to the page that it was on.
func (h *tokenPages) revokeToken(req *httpx.Request) (httpx.Response, error) {
	if err := actOn(req, h.revoke); err != nil {
		return httpx.Response{}, err
	}
	id := req.PathValue("id")
	all, err := h.entries(req)
	if err != nil { // it is revoked all the same
		return h.goTo(tokensPath), nil
	}
	at := slices.IndexFunc(all, func(t credentials.TokenEntry) bool {
		return t.ID == id || t.Name == id &&
			t.RevokedAt != nil
	})
	if at < 0 {
		return h.goTo(tokensPath), nil
	}
	path := peopleTokensPath
	if all[at].Agent {
		path = tokensPath
	}
	return h.goTo(path + "?revoked=" + url.QueryEscape(all[at].ID)), nil
}
