package api

import (
	"context"
	"net/http"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/connections"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// Connections is what people see and do of agents that are connected; *connections.Service is one. Errors are faults.
type Connections interface {
	List(ctx context.Context) ([]record.Connection, error)
	Cut(ctx context.Context, by people.Operator, id string) error
	Refused(ctx context.Context, by people.Operator, why error) error
}

// ConnectionList is the agents that are connected now, the oldest connection first.
type ConnectionList struct {
	Connections []connections.Entry `json:"connections"`
}

// Changes implements operation.Changing: a process that is killed takes its connections with it, and records nothing.
func (l ConnectionList) Changes() bool { return len(l.Connections) > 0 }

// ConnectionCut names a connection that was cut off.
type ConnectionCut struct {
	ID string `json:"id"`
}

// connected lists the agents that are connected, and cuts them off.
type connected struct{ agents Connections }

func (h *connected) operations() []operation.Operation {
	return []operation.Operation{
		operation.New(read("list_connections", "List the agents that are connected now, the oldest connection first", operation.Route{
			Path: "/connections", ID: "listConnections",
			Notes: "Those of every process that shares these records: of sessions, whatever process runs them, and those with an agent's token.",
		}), h.list),
	}
}

func (h *connected) routes() []handler.Route {
	return []handler.Route{{
		Method: "POST", Pattern: prefix + "/connections/{id}/cut", Scope: access.Operate, Handle: h.cut, Refused: h.refused, Body: handler.NoBody(),
		Doc: handler.Doc{
			ID: "cutConnection", Summary: "Cut a connected agent off", Answers: map[int]any{http.StatusAccepted: ConnectionCut{}},
			Description: "It ends within a second or two; listConnections shows when it has. Calls that have written nothing end, others are finished " +
				"and recorded. Other connections of the same session or token end as well. The agent of a session cannot connect again; an agent's " +
				"token lets nobody in for an hour, and revoking it (revokeToken) keeps its holder out for good.",
		},
	}}
}

func (h *connected) list(ctx context.Context, _ operation.Call, _ struct{}) (ConnectionList, error) {
	open, err := h.agents.List(ctx)
	return ConnectionList{connections.EntriesOf(open)}, err
}

func (h *connected) cut(req *handler.Request) (handler.Response, error) {
	id := req.PathValue("id")
	err := h.agents.Cut(req.Context(), req.Operator(), id)
	return handler.Response{Status: http.StatusAccepted, Value: ConnectionCut{id}}, err
}

// refused records what the guard has refused.
func (h *connected) refused(req *handler.Request, why *fault.Error) error {
	return h.agents.Refused(req.Context(), req.Operator(), why)
}
