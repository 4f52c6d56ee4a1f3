// This file lets people list and end the sign-ins of browsers: their own or, with the scope operate, everyone's.

package credentials

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// LoginStore knows the logins. internal/records/store implements it; errors are faults.
type LoginStore interface {
	Logins(ctx context.Context) ([]access.Login, error)
	EndLogin(ctx context.Context, id string, rows ...record.Attempt) error
}

// LoginActs are the operations for people. All fields are required.
type LoginActs struct {
	Kernel func() *operation.Kernel
	Store  func() LoginStore
	Now    func() time.Time
}

// Operations list logins, and end one.
func (a LoginActs) Operations() []operation.Operation {
	return []operation.Operation{
		operation.Define(a.Kernel, "", listLoginsOperation(), operation.CallSpec[struct{}]{}, a.list),
		operation.Define(a.Kernel, "", endLogin(), operation.CallSpec[EndLoginRequest]{}, a.endOwnLogin),
	}
}

// LoginEntry is a browser that is signed in.
type LoginEntry struct {
	ID       string    `json:"id" example:"Yt0Xn3kq9bC1sWfA"`
	Name     string    `json:"name" doc:"Of the person, or of the token that signed in" example:"gitea:ann"`
	Provider string    `json:"issuer,omitempty" doc:"Of the provider of identities that recognised the person; absent for a token"`
	Browser  string    `json:"browser" doc:"What it is, as far as it says" example:"Firefox on Linux"`
	Since    time.Time `json:"since"`
	SeenAt   time.Time `json:"seen_at" doc:"To a minute"`
	Until    time.Time `json:"until" doc:"When it ends at the latest"`
}

// LoginList is the browsers that are signed in, the newest first.
type LoginList struct {
	Logins []LoginEntry `json:"logins"`
}

// EndLoginRequest names a login.
type EndLoginRequest struct {
	ID string `json:"id" path:"id" id:"login" doc:"ID of the login, as the list shows it"`
}

// LoginEnded names one that has ended.
type LoginEnded struct {
	ID string `json:"id"`
}

func listLoginsOperation() operation.Operation {
	return operation.Operation{
		Name: "list_logins", Summary: "List the browsers that are signed in, the newest first", Effect: operation.Read,
		Command: "login list",
		Needs:   operation.Needs{For: operation.People, Scope: access.Read},
		Route: operation.Route{Method: http.MethodGet, Path: "/logins", ID: "listLogins",
			Notes: "Your own; with the scope operate, everybody's."},
		Shown: operation.Shown{
			Fresh: true, View: loginView,
			Page: operation.Page{
				Path: "/logins", Title: "Signed-in browsers", Link: "Browsers",
				Caption: "Browsers that are signed in, the newest first",
				Intro: "Browsers that are signed in: yours or, if you may operate, everybody's. One that nobody uses ends after " +
					"12 hours, and any after 7 days.",
				Empty: "No browser of yours is signed in.",
			},
		},
	}
}

func endLogin() operation.Operation {
	return operation.Operation{
		Name: "end_login", Action: access.ActionEnd, Summary: "Sign a browser out, at once", Effect: operation.Write,
		Command: "login end",
		Needs:   operation.Needs{For: operation.People, Scope: access.Read, Dry: operation.DryDone},
		Route: operation.Route{Method: http.MethodPost, Path: "/logins/{id}/end", ID: "endLogin",
			Notes: "Your own; with the scope operate, anybody's."},
		Shown: operation.Shown{
			Fresh: true, Help: "ID is the one that login list shows.",
			Said: func(out any, _ bool) string { return "Signed out " + out.(LoginEnded).ID + "." },
			Page: operation.Page{Path: "/logins/{id}/end", Title: "Sign this browser out?", Link: "Sign out",
				Button: "Sign it out"},
		},
	}
}

// seen returns the logins that the caller may see: those that are good.
func (a LoginActs) seen(ctx context.Context, call operation.Call) (out []access.Login, err error) {
	all, err := a.Store().Logins(ctx)
	now := a.Now()
	for _, l := range all {
		good := l.ID != "" && now.Before(l.CreatedAt.Add(access.LoginLife)) && now.Before(l.SeenAt.Add(access.LoginIdle))
		if good && (call.Scopes.Has(access.Operate) || l.Of(call.Caller.Actor)) {
			out = append(out, l)
		}
	}
	return out, err
}

func (a LoginActs) list(ctx context.Context, call operation.Call, _ struct{}) (LoginList, error) {
	list := LoginList{Logins: []LoginEntry{}}
	seen, err := a.seen(ctx, call)
	for _, l := range seen {
		e := LoginEntry{
			ID: l.ID, Name: l.Name, Provider: l.Issuer, Browser: browser(l.Browser), Since: l.CreatedAt.UTC(),
			SeenAt: l.SeenAt.UTC(),
			Until:  l.CreatedAt.Add(access.LoginLife).UTC(),
		}
		if e.Name == "" {
			e.Name = "a token of CLAUDEOPS_API_TOKENS"
		}
		list.Logins = append(list.Logins, e)
	}
	return list, err
}

// endOwnLogin ends a login; not_found if there is none with the id that the caller may see.
func (a LoginActs) endOwnLogin(ctx context.Context, call operation.Call, in EndLoginRequest) (LoginEnded, error) {
	seen, err := a.seen(ctx, call)
	if err != nil {
		return LoginEnded{}, err
	}
	for _, l := range seen {
		if l.ID == in.ID {
			return LoginEnded(in), a.Store().EndLogin(ctx, in.ID, call.Done("login "+l.ID+" of "+l.Name))
		}
	}
	return LoginEnded{}, fault.New(fault.NotFound,
		"no browser of yours is signed in with this id; the list shows those that are")
}

// loginView returns the list as people see it.
func loginView(out any) operation.View {
	v := operation.View{
		Empty: "No browser is signed in.", Table: [][]string{{"ID", "NAME", "BROWSER", "SINCE", "SEEN"}},
		Text:    []string{"NAME", "BROWSER"},
		Columns: []operation.Column{{Name: "Who"}, {Name: "Browser"}, {Name: "Signed in"}, {Name: "Last seen"}},
	}
	for _, e := range out.(LoginList).Logins {
		v.Rows = append(v.Rows, operation.Row{
			ID: e.ID, Name: e.Name + ", " + e.Browser,
			Cells: []operation.Cell{{Name: e.Name}, {Text: e.Browser}, {When: e.Since}, {When: e.SeenAt}},
			Ask:   "The browser is asked to sign in again at once. If it is this one, so are you.",
		})
		v.Table = append(v.Table, []string{e.ID, e.Name, e.Browser, operation.TimeCell(e.Since),
			operation.TimeCell(e.SeenAt)})
	}
	return v
}

// browser returns a short name for what a browser calls itself.
func browser(agent string) string {
	first := func(words [][2]string) string {
		for _, w := range words {
			if strings.Contains(agent, w[0]) {
				return w[1]
			}
		}
		return ""
	}
	name := first([][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"},
		{"Safari/", "Safari"}})
	system := first([][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"Linux", "Linux"}})
	switch {
	case name == "" && agent == "":
		return "unknown"
	case name == "":
		return "another program"
	case system == "":
		return name
	}
	return name + " on " + system
}
