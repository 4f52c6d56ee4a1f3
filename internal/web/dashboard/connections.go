package dashboard

import (
	"context"
	"net/url"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/connections"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Connections is what people see and do of agents that are connected; see api.Connections, of which it is the same.
type Connections interface {
	List(ctx context.Context) ([]record.Connection, error)
	Cut(ctx context.Context, by people.Operator, id string) error
	Refused(ctx context.Context, by people.Operator, why error) error
}

const connectionsPath = "/connections"

// connectionPages list the agents that are connected, and cut them off.
type connectionPages struct {
	*renderer
	agents Connections
}

// connectionsPage is the listing.
type connectionsPage struct {
	pages.Page
	Rows   []connectionRow
	MayCut bool // this person may cut agents off
}

// connectionRow is a connection as pages show it.
type connectionRow struct{ record.Connection }

// Link is the address of the session, without the base.
func (c connectionRow) Link() string { return sessionPath(c.Session) }

// Ask is the address of the page that asks whether to cut it off, without the base.
func (c connectionRow) Ask() string { return connectionsPath + "/" + url.PathEscape(c.ID) }

// Who names the session or the token in words.
func (c connectionRow) Who() string {
	if c.Session != "" {
		return "Session " + c.Session
	}
	return "Token " + c.Credential
}

// Leaving reports whether it was cut off and has not ended yet.
func (c connectionRow) Leaving() bool { return !c.CutAt.IsZero() }

func (h *connectionPages) nav() pages.NavItem {
	return pages.NavItem{Path: connectionsPath, Text: "Connected"}
}

func (h *connectionPages) routes(follows func(string, handler.Func) handler.Route) []handler.Route {
	return []handler.Route{
		follows(connectionsPath, h.list),
		{Method: "GET", Pattern: connectionsPath + "/{id}", Scope: access.Operate, Page: true, Handle: h.ask},
		{
			Method: "POST", Pattern: connectionsPath + "/{id}/cut", Scope: access.Operate, Page: true, Handle: h.cut, Body: handler.NoBody(),
			Refused: h.refused,
		},
	}
}

func (h *connectionPages) list(req *handler.Request) (handler.Response, error) {
	if err := handler.DecodeQuery(req, &struct{}{}); err != nil {
		return handler.Response{}, err
	}
	open, err := h.agents.List(req.Context())
	if err != nil {
		return handler.Response{}, err
	}
	view := connectionsPage{Page: h.frame(req, "Connected agents", connectionsPath), MayCut: req.Principal.Scopes.Has(access.Operate)}
	for _, c := range open {
		view.Rows = append(view.Rows, connectionRow{c})
	}
	return h.html("connections", view)
}

// connectionPage asks whether an agent is to be cut off.
type connectionPage struct {
	pages.Page
	connectionRow
	KeptOut string // how long its token lets nobody in
}

// ask asks whether an agent is to be cut off. Whoever asks for one that has gone is led back to the list.
func (h *connectionPages) ask(req *handler.Request) (handler.Response, error) {
	open, err := h.agents.List(req.Context())
	if err != nil {
		return handler.Response{}, err
	}
	for _, c := range open {
		if c.ID == req.PathValue("id") {
			return h.html("connection", connectionPage{
				Page: h.frame(req, "Cut an agent off?", connectionsPath), connectionRow: connectionRow{c}, KeptOut: lengthOf(connections.KeptOut),
			})
		}
	}
	return h.goTo(connectionsPath), nil
}

// cut cuts an agent off for a person, who is led back to the list.
func (h *connectionPages) cut(req *handler.Request) (handler.Response, error) {
	if err := h.agents.Cut(req.Context(), req.Operator(), req.PathValue("id")); err != nil {
		return handler.Response{}, err
	}
	return h.goTo(connectionsPath), nil
}

// refused records a cut that the guard has refused.
func (h *connectionPages) refused(req *handler.Request, why *fault.Error) error {
	return h.agents.Refused(req.Context(), req.Operator(), why)
}
