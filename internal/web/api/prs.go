package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// createPR is create_pr. The body goes to the flow as it came, so that REST is as strict as MCP.
func (h *proposals) createPR(req *handler.Request) (handler.Response, error) {
	key, err := idempotencyKey(req)
	var body []byte
	if err == nil {
		body, err = handler.ReadBody(req, "application/json")
	}
	if err != nil {
		e := fault.From(err)
		h.flow(req).Reject(req.Context(), req.Caller(), e.Code, e.Message+" ("+handler.BodySize(req)+")")
		return handler.Response{}, err
	}
	refused := func(err error) error {
		h.flow(req).Reject(req.Context(), req.Caller(), fault.CodeOf(err), fault.From(err).Message)
		return err
	}
	return h.replies.once(req, key, body, refused, func() (handler.Response, error) {
		result, err := h.flow(req).Create(req.Context(), req.Caller(), body)
		return proposed(result), err
	})
}

// proposed is 201 for a pull request that was opened now, 200 for a dry run and for one that existed.
func proposed(result prflow.CreateResult) handler.Response {
	a := handler.Response{Status: http.StatusCreated, Value: result}
	if result.DryRun || result.Reused {
		a.Status = http.StatusOK
	}
	return a
}

// repoParams are the arguments of list_prs.
type repoParams struct {
	RepoOwner string `query:"repo_owner" required:"true"`
	RepoName  string `query:"repo_name" required:"true"`
	CloneURL  string `query:"clone_url" doc:"Settles the provider if several are enabled"`
}

func (h *proposals) listPRs(req *handler.Request) (handler.Response, error) {
	raw, err := arguments(req, "")
	if err != nil {
		return handler.Response{}, err
	}
	result, err := h.flow(req).List(req.Context(), raw)
	return handler.Response{Value: result}, err
}

func (h *proposals) prStatus(req *handler.Request) (handler.Response, error) {
	raw, err := arguments(req, req.PathValue("number"))
	if err != nil {
		return handler.Response{}, err
	}
	result, err := h.flow(req).Status(req.Context(), raw)
	return handler.Response{Value: result}, err
}

// arguments writes a query as the JSON object that a tool would be called with, repeated and unknown names included: the
// flow's decoder refuses those, in the same words for every door. number is that of the path, "" for none.
func arguments(req *handler.Request, number string) ([]byte, error) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidArgument, "the query is malformed")
	}
	var b bytes.Buffer
	member := func(name string, value any) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(handler.EncodeJSON(name))
		b.WriteByte(':')
		b.Write(handler.EncodeJSON(value))
	}
	if n, err := strconv.ParseUint(number, 10, 31); err == nil {
		member("pr_number", json.RawMessage(strconv.FormatUint(n, 10)))
	} else if number != "" {
		member("pr_number", number)
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range query[name] {
			member(name, value)
		}
	}
	return []byte("{" + b.String() + "}"), nil
}
