package api

import (
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// maxFoundBody bounds the arguments of a tool that is found while the program runs, in bytes.
const maxFoundBody = 1 << 20

// foundTakes is the longest that such a tool may take. Its own limit is shorter.
const foundTakes = time.Hour

// foundRoute returns the one route of all tools that are found while the program runs. Each asks for its own scope
// beside.
func (h *operations) foundRoute(sets []operation.Toolset) handler.Route {
	return handler.Route{
		Method: http.MethodPost, Pattern: prefix + operation.ToolPath + "{name}", Scope: access.Read, Turns: h.tools,
		Takes: foundTakes,
		Body:  &handler.BodyLimit{Bytes: maxFoundBody, Advice: "give less at once"},
		Handle: func(req *handler.Request) (handler.Response, error) {
			set, o, has := find(req, sets)
			if !has {
				return handler.Response{}, fault.New(fault.NotFound, "there is no tool %s", handler.Quote(req.PathValue("name")))
			}
			reject := rejecter(set, o)
			if !req.Principal.Scopes.Has(o.Needs.Scope) {
				return handler.Response{}, formed(set.Form, o,
					reject(req, fault.New(fault.Forbidden, "%s needs the scope %s; %s has %s",
						o.Name, o.Needs.Scope, req.Principal.Name(), req.Principal.Scopes)))
			}
			response, err := h.handle(req, o, reject)
			return response, formed(set.Form, o, err)
		},
		Refused: func(req *handler.Request, why *fault.Error) error {
			if set, o, has := find(req, sets); has {
				return rejecter(set, o)(req, why)
			}
			return why
		},
		Doc: handler.Doc{
			ID: "callFoundTool", Summary: "Call a tool that the server has found, such as a script", Body: map[string]any{},
			Answers:     handler.OK(map[string]any{}),
			Description: "The body has the arguments of the tool, as tools/list describes them to MCP clients.",
		},
	}
}

// find returns the tool that a request names, among those that there are now.
func find(req *handler.Request, sets []operation.Toolset) (operation.Toolset, operation.Operation, bool) {
	for _, set := range sets {
		for _, o := range set.Found(req.Context()) {
			if o.Name == req.PathValue("name") {
				return set, o, true
			}
		}
	}
	return operation.Toolset{}, operation.Operation{}, false
}
