package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Toolsets holds the services behind the pages of toolsets. A nil one has no pages: its toolset is not enabled.
type Toolsets struct {
	Definitions Definitions
	Packages    Packages
	Scripts     Scripts
	Deployments Deployments
	Propose     operation.Operation // makes a pull request of drift
}

// pageSet is pages with an entry in the navigation, such as those of a toolset.
type pageSet interface {
	// nav is their entry in the navigation. Its path is that of one of the routes.
	nav() pages.NavItem
	// routes returns the pages and their forms; page makes the route of a page for everyone who may read.
	routes(page func(pattern string, handle httpx.Func) httpx.Route) []httpx.Route
}

// pages returns the pages of the enabled toolsets, in the order of the navigation.
func (t Toolsets) pages(r *renderer, reader Reader, attempts views.Attempts,
	acts []operation.Operation) (sets []pageSet) {
	if t.Definitions != nil {
		sets = append(sets, &catalogue{r, t.Definitions})
	}
	if t.Packages != nil {
		sets = append(sets, &packagePages{r, t.Packages})
	}
	if t.Scripts != nil {
		sets = append(sets, &scriptPages{r, t.Scripts})
	}
	if t.Deployments != nil {
		sets = append(sets, &deploymentPages{r, t.Deployments, reader, attempts, t.Packages,
			operation.Named(acts, deploy.NameRollBack), t.Propose})
	}
	return sets
}

// navigation returns the places; sets of acts belong to the agents, the others to the procedures.
func navigation(acts, toolsets []pageSet) []pages.NavItem {
	items := func(sets []pageSet) (out []pages.NavItem) {
		for _, set := range sets {
			out = append(out, set.nav())
		}
		return out
	}
	return pages.Navigation(items(acts), items(toolsets))
}

// actPages are the page of a list and, if there is one, the page that asks about an act on one of its rows; see
// operation.Shown.
type actPages struct {
	*renderer
	list operation.Operation
	act  operation.Operation // its Handle is nil if there is none
}

// actSets returns the pages of acts, one set for each list.
func actSets(r *renderer, acts []operation.Operation) (sets []pageSet) {
	for _, list := range acts {
		if list.Shown.View == nil || list.Shown.Page.Path == "" {
			continue
		}
		set := &actPages{renderer: r, list: list}
		for _, act := range acts {
			if strings.HasPrefix(act.Shown.Page.Path, list.Shown.Page.Path+"/") {
				set.act = act
			}
		}
		sets = append(sets, set)
	}
	return sets
}

func (h *actPages) nav() pages.NavItem {
	return pages.NavItem{Path: h.list.Shown.Page.Path, Text: h.list.Shown.Page.Link}
}

func (h *actPages) routes(follows func(string, httpx.Func) httpx.Route) []httpx.Route {
	routes := []httpx.Route{follows(h.list.Shown.Page.Path, withQuery(h.showActList))}
	if h.act.Handle == nil {
		return routes
	}
	form, scope := h.act.Shown.Page.Path, h.act.Needs.Scope
	return append(routes,
		httpx.Route{Method: http.MethodGet, Pattern: path.Dir(form), Scope: scope, Page: true, Handle: h.showConfirmation},
		httpx.Route{
			Method: http.MethodPost, Pattern: form, Scope: scope, Page: true, Handle: h.do, Body: httpx.NoBody(),
			Refused: rejected(h.act),
		})
}

// rejected records what the guard has refused.
func rejected(act operation.Operation) func(*httpx.Request, *fault.Error) error {
	return func(req *httpx.Request, why *fault.Error) error {
		return act.Reject(req.Context(), req.Call(nil), why)
	}
}

// actNamed returns the act of a name. A server is made with all of them.
func actNamed(acts []operation.Operation, name string) operation.Operation {
	at := slices.IndexFunc(acts, func(o operation.Operation) bool { return o.Name == name })
	return acts[at]
}

// callOperation asks for an operation.
func callOperation(req *httpx.Request, o operation.Operation, in any) (any, error) {
	arguments, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return o.Handle(req.Context(), req.Call(arguments))
}

// actOn does an act on what the address names.
func actOn(req *httpx.Request, act operation.Operation) error {
	_, err := callOperation(req, act, map[string]string{"id": req.PathValue("id")})
	return err
}

// actList is the page of a list.
type actList struct {
	pages.Page
	List, Act operation.Page
	View      operation.View
	May       bool // this person may do what the rows are for
	sortable
}

// Needs says what a person who may not act needs.
func (l actList) Needs() string { return l.List.Needs }

// Ask returns the address of the page that asks about a row, without the base.
func (l actList) Ask(id string) string { return path.Dir(addressOf(l.Act.Path, id)) }

// addressOf returns a path with the id of a row.
func addressOf(pattern, id string) string {
	return strings.Replace(pattern, "{id}", url.PathEscape(id), 1)
}

type actListParams struct {
	Sort string `json:"sort,omitempty" maxLength:"40"` // see ordering
}

func (h *actPages) showActList(req *httpx.Request, _ actListParams) (httpx.Response, error) {
	view, err := h.requestedView(req)
	if err != nil {
		return httpx.Response{}, err
	}
	order, err := sortRows(req.URL.Query(), "", viewColumns(view), view.Rows)
	return h.htmlOr(err, "actlist", actList{
		Page: h.frame(req, h.list.Shown.Page.Title, h.list.Shown.Page.Path), List: h.list.Shown.Page, Act: h.act.Shown.Page,
		View: view, sortable: order,
		May: h.act.Handle != nil && req.Principal.Scopes.Has(h.act.Needs.Scope),
	})
}

func (h *actPages) requestedView(req *httpx.Request) (operation.View, error) {
	out, err := h.list.Handle(req.Context(), req.Call([]byte("{}")))
	if err != nil {
		return operation.View{}, err
	}
	return h.list.Shown.View(out), nil
}

// actAsk asks whether an act is meant.
type actAsk struct {
	pages.Page
	Columns        []operation.Column
	Row            operation.Row
	Action, Button string
}

// showConfirmation shows the question about a row. If the row is gone, the person is led back to the list.
func (h *actPages) showConfirmation(req *httpx.Request) (httpx.Response, error) {
	view, err := h.requestedView(req)
	if err != nil {
		return httpx.Response{}, err
	}
	page := h.act.Shown.Page
	for _, row := range view.Rows {
		if row.ID == req.PathValue("id") {
			return h.html("act", actAsk{
				Page: h.frame(req, page.Title, h.list.Shown.Page.Path), Columns: view.Columns, Row: row,
				Action: addressOf(page.Path, row.ID), Button: page.Button,
			})
		}
	}
	return h.goTo(h.list.Shown.Page.Path), nil
}

// do does the act, and leads back to the list.
func (h *actPages) do(req *httpx.Request) (httpx.Response, error) {
	if err := actOn(req, h.act); err != nil {
		return httpx.Response{}, err
	}
	return h.goTo(h.list.Shown.Page.Path), nil
}
