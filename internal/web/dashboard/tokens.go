package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Tokens is what people do to tokens; see api.Tokens, of which it is the same.
type Tokens interface {
	Create(ctx context.Context, by operation.Caller, grant tokens.Grant, w tokens.Wanted) (t access.Token, secret string, err error)
	List(ctx context.Context) ([]access.Token, error)
	Revoke(ctx context.Context, by operation.Caller, idOrName string) error
	Refused(ctx context.Context, by operation.Caller, action people.Action, why error) error
}

const tokensPath = "/tokens"

// tokenPages list the tokens of REST and sign-in, make them and make them useless.
type tokenPages struct {
	*renderer
	tokens Tokens
}

// tokensPage is the listing.
type tokensPage struct {
	pages.Page
	Good, Revoked []access.Token
	Tiers, Scopes []option
	Name          string // as it was sent, if the form comes back
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
			Refused: h.refused(people.CreateToken),
		},
		{
			Method: "POST", Pattern: tokensPath + "/{id}/revoke", Scope: access.Operate, Page: true, Handle: h.revoke, Body: form,
			Refused: h.refused(people.RevokeToken),
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
	view := tokensPage{Page: h.frame(req, "Tokens", tokensPath)}
	all, err := h.tokens.List(req.Context())
	if err != nil {
		return view, err
	}
	for _, t := range all {
		if t.RevokedAt.IsZero() {
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
		return handler.Response{}, h.tokens.Refused(req.Context(), req.Caller(), people.CreateToken, err)
	}
	tier, known := gitprovider.ParseTier(form.Get("tier"))
	if !known {
		tier = 0 // refused below
	}
	wanted := tokens.Wanted{Name: strings.TrimSpace(form.Get("name")), MaxTier: tier, Scopes: strings.Join(form["scope"], ",")}
	t, secret, err := h.tokens.Create(req.Context(), req.Caller(), tokens.Grant{Tier: req.Principal.Ceiling, Scopes: req.Principal.Scopes}, wanted)
	if err != nil {
		return h.sendBack(req, form, tier, err)
	}
	view, err := h.view(req, access.Scopes{access.Read}, gitprovider.TierObserve)
	if err != nil { // it is made all the same, and nobody could see its secret any more
		view = tokensPage{Page: h.frame(req, "Tokens", tokensPath)}
	}
	view.Position, view.Made, view.Secret = "", t.Name, secret
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
	view.Name, view.Failed = form.Get("name"), h.env.Message(e.Message)
	response, err := h.html("tokens", view)
	response.Status = e.Code.HTTPStatus()
	return response, err
}

func (h *tokenPages) revoke(req *handler.Request) (handler.Response, error) {
	if err := h.tokens.Revoke(req.Context(), req.Caller(), req.PathValue("id")); err != nil {
		return handler.Response{}, err
	}
	return h.goTo(tokensPath + "?done=" + url.QueryEscape(req.PathValue("id"))), nil
}

// refused records what the guard has refused.
func (h *tokenPages) refused(action people.Action) func(*handler.Request, *fault.Error) error {
	return func(req *handler.Request, why *fault.Error) error {
		return h.tokens.Refused(req.Context(), req.Caller(), action, why)
	}
}
