package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

const tokensPath = "/tokens"

// tokenPages list the tokens of REST and sign-in, make them and make them useless.
type tokenPages struct {
	*renderer
	all, make, useless operation.Operation
}

func newTokenPages(r *renderer, acts []operation.Operation) *tokenPages {
	return &tokenPages{r, operation.Named(acts, "list_tokens"), operation.Named(acts, "create_token"), operation.Named(acts, "revoke_token")}
}

// tokensPage is the listing.
type tokensPage struct {
	pages.Page
	Good, Revoked []tokens.TokenEntry
	Tiers, Scopes []option
	Name          string // as it was sent, if the form comes back
	Days          string // the same
	Failed        string // why it comes back
	Made          string // name of the token that was just made; "" for none
	Secret        string // its secret, which this page alone shows
	Done          string // name of the one that was just revoked
}

func (h *tokenPages) routes() []handler.Route {
	form := &handler.BodyLimit{Bytes: 4 << 10, Advice: "the form of the page is smaller"}
	return []handler.Route{
		{Method: "GET", Pattern: tokensPath, Scope: access.Operate, Page: true, Handle: h.list},
		{
			Method: "POST", Pattern: tokensPath, Scope: access.Operate, Page: true, Handle: h.create, Body: form,
			Refused: rejected(h.make),
		},
		{
			Method: "POST", Pattern: tokensPath + "/{id}/revoke", Scope: access.Operate, Page: true, Handle: h.revoke, Body: form,
			Refused: rejected(h.useless),
		},
	}
}

func (h *tokenPages) list(req *handler.Request) (handler.Response, error) {
	var q struct {
		Done string `json:"done,omitempty" maxLength:"100"`
	}
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	view, err := h.view(req, access.Scopes{access.Read}, gitprovider.TierObserve)
	if err != nil {
		return handler.Response{}, err
	}
	view.Done = q.Done
	return h.html("tokens", view)
}

func (h *tokenPages) view(req *handler.Request, chosen access.Scopes, tier gitprovider.Tier) (tokensPage, error) {
	view := tokensPage{Page: h.frame(req, "Tokens", tokensPath), Days: strconv.Itoa(tokens.DefaultDays)}
	all, err := h.all.Handle(req.Context(), req.Call([]byte("{}")))
	if err != nil {
		return view, err
	}
	for _, t := range all.(tokens.TokenList).Tokens {
		if t.RevokedAt == nil {
			view.Good = append(view.Good, t)
		} else {
			view.Revoked = append(view.Revoked, t)
		}
	}
	for at := gitprovider.TierObserve; at <= min(req.Principal.Ceiling, gitprovider.TierRemediate); at++ {
		view.Tiers = append(view.Tiers, tierOption(at, tier))
	}
	meaning := map[access.Scope]string{
		access.Read: "look at everything", access.Propose: "propose changes", access.Review: "review and merge pull requests, open dry runs",
		access.Operate: "start and stop sessions, run scripts, make tokens",
	}
	for _, scope := range req.Principal.Scopes {
		view.Scopes = append(view.Scopes, option{string(scope), string(scope) + ": " + meaning[scope], chosen.Has(scope)})
	}
	return view, nil
}

// create makes a token. The answer is the page that shows its secret, once: it is never led on to, and nothing keeps it.
func (h *tokenPages) create(req *handler.Request) (handler.Response, error) {
	form, err := handler.ReadForm(req)
	if err != nil {
		return handler.Response{}, h.make.Reject(req.Context(), req.Call(nil), err)
	}
	tier, known := gitprovider.ParseTier(form.Get("tier"))
	if !known {
		tier = 0 // refused below
	}
	wanted := map[string]any{"name": strings.TrimSpace(form.Get("name")), "max_tier": tier, "scopes": form["scope"]}
	if given := strings.TrimSpace(form.Get("days")); given != "" {
		if wanted["expires_in_days"], err = strconv.Atoi(given); err != nil {
			wanted["expires_in_days"] = 0 // refused below
		}
	}
	out, err := ask(req, h.make, wanted)
	if err != nil {
		return h.sendBack(req, form, tier, err)
	}
	made := out.(tokens.TokenMade)
	view, err := h.view(req, access.Scopes{access.Read}, gitprovider.TierObserve)
	if err != nil { // it is made all the same, and nobody could see its secret any more
		view = tokensPage{Page: h.frame(req, "Tokens", tokensPath)}
	}
	view.Position, view.Made, view.Secret = "", made.Name, made.Token
	response, err := h.html("tokens", view)
	response.Status = http.StatusCreated
	return response, err
}

func (h *tokenPages) sendBack(req *handler.Request, form url.Values, tier gitprovider.Tier, why error) (handler.Response, error) {
	var chosen access.Scopes
	for _, scope := range form["scope"] {
		chosen = append(chosen, access.Scope(scope))
	}
	view, err := h.view(req, chosen, tier)
	if err != nil || !handler.PrefersHTML(req.Request) {
		return handler.Response{}, why
	}
	e := fault.From(why)
	view.Name, view.Days, view.Failed = form.Get("name"), form.Get("days"), h.env.Message(e.Message)
	response, err := h.html("tokens", view)
	response.Status = e.Code.HTTPStatus()
	return response, err
}

func (h *tokenPages) revoke(req *handler.Request) (handler.Response, error) {
	if err := actOn(req, h.useless); err != nil {
		return handler.Response{}, err
	}
	return h.goTo(tokensPath + "?done=" + url.QueryEscape(req.PathValue("id"))), nil
}
