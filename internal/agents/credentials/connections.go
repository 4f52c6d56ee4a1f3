// Package credentials holds what people do about the ways in: the tokens of REST and sign-in, the sign-ins of browsers,
// and the agents that are connected now. Each act is an operation, so that pages, REST and commands have it alike.
package credentials

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// KeptOut is how long the token of a connection that was cut off is refused. Revoking the token keeps its holder out
// for good.
const KeptOut = time.Hour

// ConnectionStore knows the connections of all processes that share the records. internal/records/store implements it;
// errors are faults.
type ConnectionStore interface {
	// Connections lists those that are open, the oldest first.
	Connections(ctx context.Context) ([]record.Connection, error)
	// CutConnection has the process that serves the connection end it, and appends the rows to the audit; not_found if
	// none with the id is open.
	CutConnection(ctx context.Context, id, by string, rows ...record.Attempt) error
	// LastCuts returns, by the name of a token, when a connection of it was last cut off, if within KeptOut.
	LastCuts(ctx context.Context) (map[string]time.Time, error)
}

// ConnectionActs are the operations for people. All fields are required.
type ConnectionActs struct {
	Kernel func() *operation.Kernel
	Store  func() ConnectionStore
	Now    func() time.Time
}

// Operations returns the list and the cut.
func (a ConnectionActs) Operations() []operation.Operation {
	return []operation.Operation{
		operation.Define(a.Kernel, "", listOperation(), operation.CallSpec[struct{}]{},
			func(ctx context.Context, _ operation.Call, _ struct{}) (ConnectionList, error) {
				open, err := a.Store().Connections(ctx)
				return ConnectionList{entriesOf(open)}, err
			}),
		operation.Define(a.Kernel, "", a.cutOff(), operation.CallSpec[CutRequest]{}, a.cutConnection),
	}
}

// ConnectionEntry is an agent that is connected, as programs get it.
type ConnectionEntry struct {
	ID       string     `json:"id" example:"01K9ZC3M4Q6T8V0X2Z4B6D8F0H"`
	Session  string     `json:"session,omitempty" doc:"The session of agents that it is of; absent for an agent that a person runs"`
	Token    string     `json:"token,omitempty" doc:"The name of the agent's token that let it in; absent for one of a session, which has a ticket" example:"laptop"`
	Tier     int        `json:"tier" doc:"The highest tier that it acts at" example:"2"`
	DryRun   bool       `json:"dry_run" doc:"Its proposals pass the gates and are not written"`
	ReadOnly bool       `json:"read_only" doc:"It can propose nothing"`
	Way      string     `json:"way" enum:"unix,https" doc:"How it came in"`
	Peer     string     `json:"peer" doc:"Who is at the other end, as far as it is known" example:"pid 4711, uid 1000"`
	Since    time.Time  `json:"since"`
	Calls    int        `json:"calls" doc:"Calls of tools under way, as of the last second or two"`
	CutAt    *time.Time `json:"cut_at,omitempty" doc:"When a person cut it off; it ends within a second or two"`
	CutBy    string     `json:"cut_by,omitempty" doc:"Who did"`
}

// entriesOf converts connections for programs; the result is never nil.
func entriesOf(open []record.Connection) []ConnectionEntry {
	out := []ConnectionEntry{}
	for _, c := range open {
		e := ConnectionEntry{
			ID: c.ID, Session: c.Session, Token: c.Credential, Tier: int(c.Tier), DryRun: c.DryRun, ReadOnly: c.ReadOnly,
			Way: c.Way, Peer: c.Peer,
			Since: c.Since.UTC(), Calls: c.Calls, CutBy: c.CutBy,
		}
		if !c.CutAt.IsZero() {
			cut := c.CutAt.UTC()
			e.CutAt = &cut
		}
		out = append(out, e)
	}
	return out
}

// ConnectionList is the agents that are connected now, the oldest connection first.
type ConnectionList struct {
	Connections []ConnectionEntry `json:"connections"`
}

// Changes implements operation.Changing: a process that is killed takes its connections with it, and records nothing.
func (l ConnectionList) Changes() bool { return len(l.Connections) > 0 }

// CutRequest names a connection.
type CutRequest struct {
	ID string `json:"id" path:"id" id:"connection" doc:"ID of the connection, as the list shows it"`
}

// ConnectionCut names a connection that was cut off.
type ConnectionCut struct {
	ID string `json:"id"`
}

func listOperation() operation.Operation {
	return operation.Operation{
		Name: "list_connections", Summary: "List the agents that are connected now, the oldest connection first",
		Effect: operation.Read, Command: "connections list",
		Needs: operation.Needs{For: operation.People, Scope: access.Read},
		Route: operation.Route{
			Method: http.MethodGet, Path: "/connections", ID: "listConnections",
			Notes: "Those of every process that shares these records: of sessions, whatever process runs them, and those with " +
				"an agent's token.",
		},
		Shown: operation.Shown{
			Help: "list shows the agents that speak MCP with a process of these records: those of sessions, whatever process " +
				"runs them, and those\n" +
				"with an agent's token at claudeops serve. A server that a client started by itself, with claudeops mcp-server, " +
				"is not listed.",
			View: connectionsView,
			Page: operation.Page{
				Path: "/connections", Title: "Connected agents", Topic: "connections", Link: "Connected",
				Caption: "Connected agents, the oldest connection first",
				Intro: "Agents that speak MCP with this server, or with a process that shares its records: those of " +
					"[sessions](/sessions), and those with an agent's token.",
				Needs: "Cutting an agent off needs the scope operate.",
				Empty: "No agent is connected now. Those of sessions connect by themselves; start one on the page " +
					"[Sessions](/sessions). An agent of your own connects " +
					"with a token: `claudeops token create --agent` makes one, and `claudeops mcp-config --connect` prints what the " +
					"agent needs. An agent that runs " +
					"`claudeops mcp-server` by itself is not listed: it has a server of its own.",
			},
		},
	}
}

func (a ConnectionActs) cutOff() operation.Operation {
	return operation.Operation{
		Name: "cut_connection", Action: "connection.cut", Summary: "Cut a connected agent off", Effect: operation.Write,
		Command: "connections cut",
		Needs:   operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryDone},
		Route: operation.Route{
			Method: http.MethodPost, Path: "/connections/{id}/cut", ID: "cutConnection", Status: http.StatusAccepted,
			Notes: "It ends within a second or two; listConnections shows when it has. Calls that have written nothing end, " +
				"others are finished " +
				"and recorded. Other connections of the same session or token end as well. The agent of a session cannot connect " +
				"again; an agent's " +
				"token lets nobody in for an hour, and revoking it (revokeToken) keeps its holder out for good.",
		},
		Shown: operation.Shown{
			Short: "Cut a connected agent off, whatever process serves it",
			Help: "cut ends the connection: calls that have written nothing end, others are finished and recorded. The " +
				"process that serves it is told by\n" +
				"the record, at which that process looks every second. Other connections of the same session or token end as " +
				"well. The agent of a\n" +
				"session cannot connect again; the session goes on without us, and session stop ends it. An agent's token lets " +
				"nobody in for an hour, and token revoke keeps its holder out for good. The command\n" +
				"waits up to 45 seconds for the end.",
			Over: func(ctx context.Context, out any) (bool, error) {
				open, err := a.Store().Connections(ctx)
				return !slices.ContainsFunc(open, func(c record.Connection) bool { return c.ID == out.(ConnectionCut).ID }), err
			},
			Said: func(out any, over bool) string {
				if over {
					return fmt.Sprintf("Connection %s has ended.", out.(ConnectionCut).ID)
				}
				return fmt.Sprintf("Connection %s was told to end, and has not ended yet.", out.(ConnectionCut).ID)
			},
			Page: operation.Page{Path: "/connections/{id}/cut", Title: "Cut an agent off?", Link: "Cut off",
				Button: "Cut it off"},
		},
	}
}

// cutConnection cuts a connection off, and records who did. The process that serves it ends it within a second or two:
// calls that have written nothing end, others are finished and recorded. With it end all others of the same session or
// token. A session's ticket is refused from then on; the session itself goes on without us. A token is refused for
// KeptOut. not_found if no open connection has the id.
func (a ConnectionActs) cutConnection(ctx context.Context, call operation.Call, in CutRequest) (ConnectionCut, error) {
	open, err := a.Store().Connections(ctx)
	if err != nil {
		return ConnectionCut{}, err
	}
	what := "connection " + in.ID
	for _, c := range open {
		switch {
		case c.ID != in.ID:
			continue
		case c.Session != "":
			what = fmt.Sprintf("connection %s of tier %s (%s) of session %s", c.ID, c.Tier, c.Peer, c.Session)
		default:
			until := a.Now().Add(KeptOut).UTC().Format(time.RFC3339)
			what = fmt.Sprintf("connection %s of tier %s (%s) of token %s, which lets nobody in until %s", c.ID, c.Tier, c.Peer,
				c.Credential, until)
		}
	}
	return ConnectionCut(in), a.Store().CutConnection(ctx, in.ID, call.Caller.String(), call.Done(what))
}

// connectionsView returns the list as people see it.
func connectionsView(out any) operation.View {
	v := operation.View{
		Empty: "No agent is connected.", Table: [][]string{{"ID", "AGENT", "TIER", "RIGHTS", "PEER", "SINCE", "CALLS"}},
		Text: []string{"RIGHTS", "PEER"}, Goes: []string{"PEER", "CALLS", "RIGHTS"},
		Columns: []operation.Column{{Name: "Agent"}, {Name: "Tier"}, {Name: "At the other end", Wide: true},
			{Name: "Calls under way", Number: true}, {Name: "Since"}},
	}
	for _, c := range out.(ConnectionList).Connections {
		row, rights := rowOf(c)
		v.Rows = append(v.Rows, row)
		v.Table = append(v.Table, []string{
			c.ID, strings.ToLower(row.Cells[0].Text) + row.Cells[0].Name, strconv.Itoa(c.Tier), rights,
			c.Peer + " (" + c.Way + ")",
			c.Since.Format(time.RFC3339), strconv.Itoa(c.Calls),
		})
	}
	return v
}

// rowOf returns a connection as the page shows it. rights say at the terminal what it may not, and whether it was cut
// off.
func rowOf(c ConnectionEntry) (row operation.Row, rights string) {
	agent, ask := operation.Cell{Text: "Token ", Name: c.Token}, "token end as well. The token lets nobody in for "+
		fmt.Sprintf("%.0f minutes", KeptOut.Minutes())+
		". To keep its holder out for good, revoke it on the page [Agent tokens](/tokens)."
	if c.Session != "" {
		agent = operation.Cell{Text: "Session ", Name: c.Session, Link: "/sessions/" + url.PathEscape(c.Session)}
		ask = "session end as well. The agent of the session cannot connect again. The session itself goes on without " +
			"Claude Ops; stop it on [its page](" + agent.Link + ")."
	}
	row = operation.Row{ID: c.ID, Name: agent.Text + agent.Name, Cells: []operation.Cell{
		agent, {Text: strconv.Itoa(c.Tier)}, {Name: c.Peer, Sub: c.Way}, {Text: strconv.Itoa(c.Calls)}, {When: c.Since},
	}}
	row.Ask = "Calls that have written nothing end; those that write to a repository are finished and recorded. Other " +
		"connections of the same " + ask
	var words []string
	if c.DryRun {
		words, row.Tags = append(words, "dry run"), append(row.Tags, operation.Tag{Text: "dry run", Class: "dry_run"})
	}
	if c.ReadOnly {
		words, row.Tags = append(words, "read-only"), append(row.Tags, operation.Tag{Text: "read-only"})
	}
	if c.CutAt != nil {
		words = append(words, "cut off by "+c.CutBy)
		row.Note = []operation.Cell{{Text: "cut off "}, {When: *c.CutAt}, {Text: " by ", Name: c.CutBy},
			{Text: ", and ending"}}
		row.Over = []operation.Cell{{Text: "It was cut off "}, {When: *c.CutAt}, {Text: " by ", Name: c.CutBy},
			{Text: ", and is ending."}}
	}
	if len(words) == 0 {
		return row, "-"
	}
	return row, strings.Join(words, ", ")
}

// AdmitConnection returns unauthenticated for a token one of whose connections was cut off less than KeptOut ago. It
// does not apply to a newer token with the same name.
func AdmitConnection(ctx context.Context, store ConnectionStore, token string, made, now time.Time) error {
	cuts, err := store.LastCuts(ctx)
	if err != nil {
		return err
	}
	if until := cuts[token].Add(KeptOut); keptOut(cuts[token], made, now) {
		return fault.New(fault.Unauthenticated, "a person cut off the agent with this token; it lets nobody in until %s",
			until.UTC().Format(time.RFC3339))
	}
	return nil
}

// keptOut reports whether a token that was made at one time is refused now since a connection was cut off at another.
func keptOut(cut, made, now time.Time) bool { return cut.After(made) && now.Before(cut.Add(KeptOut)) }

// Gone returns which of some names are of no token that lets an agent in now. It reads the tokens and the cuts once
// each.
func Gone(ctx context.Context, store ConnectionStore, tokens func(context.Context) ([]access.Token, error),
	names []string,
	now time.Time) ([]string, error) {
	list, err := tokens(ctx)
	if err != nil {
		return nil, err
	}
	cuts, err := store.LastCuts(ctx)
	if err != nil {
		return nil, err
	}
	good := map[string]bool{}
	for _, t := range list {
		good[t.Name] = good[t.Name] || t.Agent && t.Good(now) && !keptOut(cuts[t.Name], t.CreatedAt, now)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return good[name] }), nil
}
