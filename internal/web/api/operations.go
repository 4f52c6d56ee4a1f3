package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// operationRoutes serves operations over REST.
type operationRoutes struct {
	turns    *httpx.Turns // of those that do more than read
	tools    *httpx.Turns // of other toolsets' tools, which may take long and must not hold up a proposal
	replies  *idempotency
	basePath string
}

// maxRuns bounds how many tools of other toolsets than that of pull requests run at the same time. Others wait.
const maxRuns = 8

func (h *operationRoutes) routes(sets []operation.Toolset) (routes []httpx.Route) {
	var finding []operation.Toolset
	for _, set := range sets {
		for _, o := range set.Operations {
			if o.Route.Method != "" {
				routes = append(routes, h.route(set, o))
			}
		}
		if set.Found != nil {
			finding = append(finding, set)
		}
	}
	if len(finding) > 0 {
		routes = append(routes, h.foundRoute(finding))
	}
	return routes
}

// rejecter records a request that never came to its operation.
func rejecter(set operation.Toolset, o operation.Operation) func(*httpx.Request, *fault.Error) error {
	if o.Reject != nil {
		return func(req *httpx.Request, why *fault.Error) error {
			return o.Reject(req.Context(), operationCall(req, o, nil), why)
		}
	}
	return func(req *httpx.Request, why *fault.Error) error {
		if o.Effect != operation.Read && set.Reject != nil {
			set.Reject(req.Context(), operationCall(req, o, nil), o.Name, why)
		}
		return why
	}
}

func (h *operationRoutes) route(set operation.Toolset, o operation.Operation) httpx.Route {
	reject := rejecter(set, o)
	r := httpx.Route{
		Method: o.Route.Method, Pattern: prefix + o.Route.Path, Scope: o.Needs.Scope, Doc: docOf(o), Takes: o.Route.Takes,
		Handle: func(req *httpx.Request) (httpx.Response, error) {
			response, err := h.handle(req, o, reject)
			return response, formed(set.Form, o, err)
		},
	}
	if o.Route.Method != http.MethodGet {
		r.Body = &httpx.BodyLimit{Bytes: o.Route.MaxBody, Advice: o.Route.TooLarge}
	}
	switch {
	case o.ForPeople() && o.Effect == operation.Read:
	case o.ForPeople() && !strings.HasPrefix(o.Route.Path, "/prs/") &&
		!o.Needs.OwnGates: // to cut off or to revoke waits for no proposal
		r.Refused = reject
	case strings.HasPrefix(o.Route.Path, operation.ToolPath):
		r.Turns, r.Refused = h.tools, reject
	case o.Effect != operation.Read:
		r.Turns, r.Refused = h.turns, reject
	}
	return r
}

// formed returns an error with what the form of its toolset makes of it, if it has one.
func formed(form *operation.Form, o operation.Operation, err error) error {
	if form == nil || err == nil {
		return err
	}
	return &httpx.FormedError{Err: err, Failure: form.Failure(o, err, operation.RequestIDOf(err))}
}

func operationCall(req *httpx.Request, o operation.Operation, raw []byte) operation.Call {
	c := req.Call(raw)
	if !o.ForPeople() || o.Needs.OwnGates {
		c.ID = "" // an attempt has its own
	}
	return c
}

// handle hands a request to an operation. A body goes to it as it came, so that REST is as strict as MCP.
func (h *operationRoutes) handle(
	req *httpx.Request, o operation.Operation, reject func(*httpx.Request, *fault.Error) error,
) (httpx.Response, error) {
	key, err := "", error(nil)
	if o.Route.Keyed {
		key, err = idempotencyKey(req)
	}
	var raw []byte
	if err == nil && o.Route.MaxBody > 0 {
		raw, err = httpx.ReadBody(req, "application/json")
		raw = withPath(req, raw, o)
	} else if err == nil {
		raw, err = httpx.Arguments(req, queryOf(req, o), o.Input)
	}
	if err != nil {
		e := fault.From(err)
		_ = reject(req, fault.New(e.Code, "%s (%s)", e.Message, httpx.BodySize(req)))
		return httpx.Response{}, err
	}
	refused := func(err error) error {
		_ = reject(req, fault.From(err))
		return err
	}
	a, err := h.replies.once(req, key, raw, refused, func() (httpx.Response, error) {
		output, err := o.Handle(req.Context(), operationCall(req, o, raw))
		return response(o, output), err
	})
	if err != nil {
		return httpx.Response{}, err
	}
	return h.located(o, a), nil
}

// located adds to an answer the address of what it is about, if that has one; to one that is given again, too.
func (h *operationRoutes) located(o operation.Operation, a httpx.Response) httpx.Response {
	if !o.Output.Implements(reflect.TypeFor[operation.Located]()) {
		return a
	}
	about, ok := a.Value.(operation.Located)
	if !ok {
		kept := reflect.New(o.Output)
		if json.Unmarshal(a.Bytes, kept.Interface()) != nil {
			return a
		}
		about = kept.Elem().Interface().(operation.Located)
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set("Location", h.basePath+prefix+about.Location())
	return a
}

// withPath adds the parts of the path that are fields of the input to the JSON object of a body. One that the body has
// too is then there twice, which decoders refuse. A body that is not an object stays unchanged, and so do the arguments
// of a tool that is found while the program runs: its path has none of them.
func withPath(req *httpx.Request, raw []byte, o operation.Operation) []byte {
	if o.Schemas.Input != nil {
		return raw
	}
	rest, isObject := bytes.CutPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
	inPath, err := httpx.Arguments(req, "", o.Input)
	if !isObject || err != nil || len(inPath) <= len("{}") {
		return raw
	}
	inPath = inPath[:len(inPath)-1]
	if !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("}")) {
		inPath = append(inPath, ',')
	}
	return append(inPath, rest...)
}

// queryOf returns the query of a request; "" if no field of the input is in the query.
func queryOf(req *httpx.Request, o operation.Operation) string {
	inQuery := func(f operation.Field) bool { return f.Tag.Get("path") == "" }
	if slices.ContainsFunc(operation.Fields(o.Input), inQuery) {
		return req.URL.RawQuery
	}
	return ""
}

// response returns an output as HTTP has it.
func response(o operation.Operation, output any) httpx.Response {
	r := httpx.Response{Value: output, Status: o.Route.Status}
	if creation, ok := output.(operation.Creation); ok && creation.Created() {
		r.Status = http.StatusCreated
	}
	if changing, ok := output.(operation.NoETag); ok {
		r.Volatile = changing.Changes()
	}
	return r
}

func docOf(o operation.Operation) httpx.Doc {
	output := reflect.Zero(o.Output).Interface()
	d := httpx.Doc{
		ID: o.Route.ID, Summary: o.Summary, Description: o.Route.Notes,
		Answers: map[int]any{cmp.Or(o.Route.Status, http.StatusOK): output}, Keyed: o.Route.Keyed,
	}
	if o.Route.Creates {
		d.Answers[http.StatusCreated] = output
	}
	if input := reflect.Zero(o.Input).Interface(); o.Route.MaxBody > 0 {
		d.Body = input
	} else {
		d.Params = input
	}
	return d
}

// maxFoundBody bounds the arguments of a tool that is found while the program runs, in bytes.
const maxFoundBody = 1 << 20

// foundTakes is the longest that such a tool may take. Its own limit is shorter.
const foundTakes = time.Hour

// foundRoute returns the one route of all tools that are found while the program runs. Each asks for its own scope
// beside.
func (h *operationRoutes) foundRoute(sets []operation.Toolset) httpx.Route {
	return httpx.Route{
		Method: http.MethodPost, Pattern: prefix + operation.ToolPath + "{name}", Scope: access.Read, Turns: h.tools,
		Takes: foundTakes,
		Body:  &httpx.BodyLimit{Bytes: maxFoundBody, Advice: "give less at once"},
		Handle: func(req *httpx.Request) (httpx.Response, error) {
			set, o, has := findTool(req, sets)
			if !has {
				return httpx.Response{}, fault.New(fault.NotFound, "there is no tool %s", httpx.Quote(req.PathValue("name")))
			}
			reject := rejecter(set, o)
			if !req.Principal.Scopes.Has(o.Needs.Scope) {
				return httpx.Response{}, formed(set.Form, o,
					reject(req, fault.New(fault.Forbidden, "%s needs the scope %s; %s has %s",
						o.Name, o.Needs.Scope, req.Principal.Name(), req.Principal.Scopes)))
			}
			response, err := h.handle(req, o, reject)
			return response, formed(set.Form, o, err)
		},
		Refused: func(req *httpx.Request, why *fault.Error) error {
			if set, o, has := findTool(req, sets); has {
				return rejecter(set, o)(req, why)
			}
			return why
		},
		Doc: httpx.Doc{
			ID: "callFoundTool", Summary: "Call a tool that the server has found, such as a script", Body: map[string]any{},
			Answers:     httpx.OK(map[string]any{}),
			Description: "The body has the arguments of the tool, as tools/list describes them to MCP clients.",
		},
	}
}

// findTool returns the tool that a request names, among those that there are now.
func findTool(req *httpx.Request, sets []operation.Toolset) (operation.Toolset, operation.Operation, bool) {
	for _, set := range sets {
		for _, o := range set.Found(req.Context()) {
			if o.Name == req.PathValue("name") {
				return set, o, true
			}
		}
	}
	return operation.Toolset{}, operation.Operation{}, false
}

// idempotency gives an answer again to who repeats a request under an Idempotency-Key.
type idempotency struct {
	replies views.Replies
	env     httpx.Env
}

// Bounds of an Idempotency-Key: how long it is remembered, how long its answer may take to be kept, and how long it may
// be, in bytes.
const (
	keyLifetime = 24 * time.Hour
	keepFor     = 30 * time.Second
	maxKey      = 255
)

func idempotencyKey(req *httpx.Request) (string, error) {
	given := req.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return "", nil
	}
	printable := func(b byte) bool { return b > ' ' && b < 0x7f }
	if len(given) > 1 || len(given[0]) == 0 || len(given[0]) > maxKey ||
		slices.ContainsFunc([]byte(given[0]), func(b byte) bool { return !printable(b) }) {
		return "", fault.New(fault.InvalidArgument, "Idempotency-Key must be 1 to %d visible ASCII characters, once", maxKey)
	}
	return given[0], nil
}

// once does something under an Idempotency-Key: what was answered to the same body before is answered again. Only
// success is: a refusal may be different by now. refused records a key that is not good for the body.
func (k *idempotency) once(
	req *httpx.Request, key string, body []byte, refused func(error) error, do func() (httpx.Response, error),
) (httpx.Response, error) {
	if key == "" {
		return do()
	}
	sum := sha256.Sum256(body)
	owner := httpx.Key(req.Principal.Actor)
	reply, err := k.replies.TakeKey(req.Context(), owner, key, hex.EncodeToString(sum[:]), keyLifetime)
	if err != nil {
		return httpx.Response{}, refused(err)
	}
	if reply.Status != 0 {
		return httpx.Response{Status: reply.Status, Bytes: reply.Body, ContentType: "application/json",
			Header: http.Header{"Idempotency-Replayed": {"true"}}}, nil
	}
	a, err := do()
	if err != nil {
		return httpx.Response{}, err
	}
	a.Bytes, a.ContentType = httpx.EncodeJSON(a.Value), "application/json"
	keeping, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), keepFor) // the caller may be gone
	defer cancel()
	if err := k.replies.KeepReply(keeping, owner, key, record.Reply{Status: a.Status, Body: a.Bytes}); err != nil {
		k.env.Log.Warn("answer not kept for its Idempotency-Key", "request_id", req.ID, "error",
			k.env.Redact(httpx.Cause(err)))
	}
	return a, nil
}
