package api

import (
	"context"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// Tokens is what people do to tokens; *tokens.Service is one. Errors are faults.
type Tokens interface {
	Create(ctx context.Context, by operation.Caller, grant tokens.Grant, w tokens.Wanted) (t access.Token, secret string, err error)
	List(ctx context.Context) ([]access.Token, error)
	Revoke(ctx context.Context, by operation.Caller, idOrName string) error
	Refused(ctx context.Context, by operation.Caller, action people.Action, why error) error
}

// TokenRequest is the token to make.
type TokenRequest struct {
	Name    string         `json:"name" required:"true" maxBytes:"64" doc:"Who it is for; in the record of all that it does" example:"ann"`
	MaxTier int            `json:"max_tier,omitempty" minimum:"1" maximum:"3" doc:"The highest tier that it may act at; 1 if it is left out"`
	Scopes  []access.Scope `json:"scopes" required:"true" minItems:"1" enum:"propose,review,read,operate" doc:"No more than your own"`
}

// TokenEntry is a token without its secret.
type TokenEntry struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	MaxTier   int            `json:"max_tier"`
	Scopes    []access.Scope `json:"scopes"`
	CreatedAt time.Time      `json:"created_at"`
	RevokedAt *time.Time     `json:"revoked_at,omitempty"`
	ExpiresAt *time.Time     `json:"expires_at,omitempty"`
	Agent     bool           `json:"agent,omitempty" doc:"Lets an agent in over MCP, and opens nothing else"`
}

// TokenList is every token, oldest first.
type TokenList struct {
	Tokens []TokenEntry `json:"tokens"`
}

// TokenMade is a new token.
type TokenMade struct {
	TokenEntry
	Token string `json:"token" doc:"The secret. It is shown this once"`
}

// TokenRevoked names a token that is useless now.
type TokenRevoked struct {
	Revoked string `json:"revoked"`
}

// tokenRoutes make, list and revoke tokens.
type tokenRoutes struct{ tokens Tokens }

func (h *tokenRoutes) routes() []handler.Route {
	return []handler.Route{
		{
			Method: "GET", Pattern: prefix + "/tokens", Scope: access.Operate, Handle: h.list,
			Doc: handler.Doc{ID: "listTokens", Summary: "List tokens, revoked ones included", Answers: handler.OK(TokenList{})},
		},
		{
			Method: "POST", Pattern: prefix + "/tokens", Scope: access.Operate, Handle: h.create, Refused: h.refused(people.CreateToken),
			Body: &handler.BodyLimit{Bytes: 4 << 10, Advice: "a name is shorter"},
			Doc: handler.Doc{
				ID: "createToken", Summary: "Make a token", Body: TokenRequest{}, Answers: map[int]any{http.StatusCreated: TokenMade{}},
				Description: "Nobody gives a scope or a tier that they have not. Only the hash of the secret is kept.",
			},
		},
		{
			Method: "POST", Pattern: prefix + "/tokens/{id}/revoke", Scope: access.Operate, Handle: h.revoke, Refused: h.refused(people.RevokeToken),
			Body: handler.NoBody(),
			Doc: handler.Doc{
				ID: "revokeToken", Summary: "Make a token, and the logins made with it, useless at once", Answers: handler.OK(TokenRevoked{}),
				Description: "id is the token's id or its name.",
			},
		},
	}
}

func entryOf(t access.Token) TokenEntry {
	e := TokenEntry{ID: t.ID, Name: t.Name, MaxTier: int(t.MaxTier), Scopes: append([]access.Scope{}, t.Scopes...), CreatedAt: t.CreatedAt.UTC(), Agent: t.Agent}
	if !t.ExpiresAt.IsZero() {
		expires := t.ExpiresAt.UTC()
		e.ExpiresAt = &expires
	}
	if !t.RevokedAt.IsZero() {
		revoked := t.RevokedAt.UTC()
		e.RevokedAt = &revoked
	}
	return e
}

func (h *tokenRoutes) list(req *handler.Request) (handler.Response, error) {
	if err := handler.DecodeQuery(req, &struct{}{}); err != nil {
		return handler.Response{}, err
	}
	all, err := h.tokens.List(req.Context())
	if err != nil {
		return handler.Response{}, err
	}
	list := TokenList{Tokens: []TokenEntry{}}
	for _, t := range all {
		list.Tokens = append(list.Tokens, entryOf(t))
	}
	return handler.Response{Value: list}, nil
}

func (h *tokenRoutes) create(req *handler.Request) (handler.Response, error) {
	body, err := handler.ReadBody(req, "application/json")
	var q TokenRequest
	if err == nil {
		err = handler.Invalid(strictjson.DecodeWithinLimits(body, &q, strictjson.Options{What: "body"}))
	}
	if err != nil {
		return handler.Response{}, h.tokens.Refused(req.Context(), req.Caller(), people.CreateToken, err)
	}
	t, secret, err := h.tokens.Create(req.Context(), req.Caller(), GrantOf(req), tokens.Wanted{
		Name: q.Name, MaxTier: gitprovider.Tier(max(1, q.MaxTier)), Scopes: access.Scopes(q.Scopes).String(),
	})
	if err != nil {
		return handler.Response{}, err
	}
	return handler.Response{Status: http.StatusCreated, Value: TokenMade{entryOf(t), secret}}, nil
}

func (h *tokenRoutes) revoke(req *handler.Request) (handler.Response, error) {
	id := req.PathValue("id")
	if err := h.tokens.Revoke(req.Context(), req.Caller(), id); err != nil {
		return handler.Response{}, err
	}
	return handler.Response{Value: TokenRevoked{id}}, nil
}

// GrantOf is the most that a caller may give to others.
func GrantOf(req *handler.Request) tokens.Grant {
	return tokens.Grant{Tier: req.Principal.Ceiling, Scopes: req.Principal.Scopes}
}

// refused records what the guard has refused.
func (h *tokenRoutes) refused(action people.Action) func(*handler.Request, *fault.Error) error {
	return func(req *handler.Request, why *fault.Error) error {
		return h.tokens.Refused(req.Context(), req.Caller(), action, why)
	}
}
