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
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/records"
)

// operations serves operations over REST.
type operations struct {
	turns    *handler.Turns // of those that do more than read
	tools    *handler.Turns // of other toolsets' tools, which may take long and must not hold up a proposal
	replies  *idempotency
	basePath string
}

// maxRuns bounds how many tools of other toolsets than that of pull requests run at the same time. Others wait.
const maxRuns = 8

func (h *operations) routes(sets []operation.Toolset) (routes []handler.Route) {
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
func rejecter(set operation.Toolset, o operation.Operation) func(*handler.Request, *fault.Error) error {
	if o.Reject != nil {
		return func(req *handler.Request, why *fault.Error) error {
			return o.Reject(req.Context(), call(req, o, nil), why)
		}
	}
	return func(req *handler.Request, why *fault.Error) error {
		if o.Effect != operation.Read && set.Reject != nil {
			set.Reject(req.Context(), call(req, o, nil), o.Name, why)
		}
		return why
	}
}

func (h *operations) route(set operation.Toolset, o operation.Operation) handler.Route {
	reject := rejecter(set, o)
	r := handler.Route{
		Method: o.Route.Method, Pattern: prefix + o.Route.Path, Scope: o.Needs.Scope, Doc: docOf(o), Takes: o.Route.Takes,
		Handle: func(req *handler.Request) (handler.Response, error) {
			response, err := h.handle(req, o, reject)
			return response, formed(set.Form, o, err)
		},
	}
	if o.Route.Method != http.MethodGet {
		r.Body = &handler.BodyLimit{Bytes: o.Route.MaxBody, Advice: o.Route.TooLarge}
	}
	switch {
	case o.ForPeople() && o.Effect == operation.Read:
	case o.ForPeople() && !strings.HasPrefix(o.Route.Path, "/prs/") &&
		!o.Needs.Gated: // to cut off or to revoke waits for no proposal
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
	return &handler.FormedError{Err: err, Failure: form.Failure(o, err, operation.RequestIDOf(err))}
}

func call(req *handler.Request, o operation.Operation, raw []byte) operation.Call {
	c := req.Call(raw)
	if !o.ForPeople() || o.Needs.Gated {
		c.ID = "" // an attempt has its own
	}
	return c
}

// handle hands a request to an operation. A body goes to it as it came, so that REST is as strict as MCP.
func (h *operations) handle(
	req *handler.Request, o operation.Operation, reject func(*handler.Request, *fault.Error) error,
) (handler.Response, error) {
	key, err := "", error(nil)
	if o.Route.Keyed {
		key, err = idempotencyKey(req)
	}
	var raw []byte
	if err == nil && o.Route.MaxBody > 0 {
		raw, err = handler.ReadBody(req, "application/json")
		raw = withPath(req, raw, o)
	} else if err == nil {
		raw, err = handler.Arguments(req, queryOf(req, o), o.Input)
	}
	if err != nil {
		e := fault.From(err)
		_ = reject(req, fault.New(e.Code, "%s (%s)", e.Message, handler.BodySize(req)))
		return handler.Response{}, err
	}
	refused := func(err error) error {
		_ = reject(req, fault.From(err))
		return err
	}
	a, err := h.replies.once(req, key, raw, refused, func() (handler.Response, error) {
		output, err := o.Handle(req.Context(), call(req, o, raw))
		return response(o, output), err
	})
	if err != nil {
		return handler.Response{}, err
	}
	return h.located(o, a), nil
}

// located adds to an answer the address of what it is about, if that has one; to one that is given again, too.
func (h *operations) located(o operation.Operation, a handler.Response) handler.Response {
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
func withPath(req *handler.Request, raw []byte, o operation.Operation) []byte {
	if o.Schemas.Input != nil {
		return raw
	}
	rest, isObject := bytes.CutPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
	inPath, err := handler.Arguments(req, "", o.Input)
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
func queryOf(req *handler.Request, o operation.Operation) string {
	inQuery := func(f operation.Field) bool { return f.Tag.Get("path") == "" }
	if slices.ContainsFunc(operation.Fields(o.Input), inQuery) {
		return req.URL.RawQuery
	}
	return ""
}

// response returns an output as HTTP has it.
func response(o operation.Operation, output any) handler.Response {
	r := handler.Response{Value: output, Status: o.Route.Status}
	if creation, ok := output.(operation.Creation); ok && creation.Created() {
		r.Status = http.StatusCreated
	}
	if changing, ok := output.(operation.Changing); ok {
		r.Volatile = changing.Changes()
	}
	return r
}

func docOf(o operation.Operation) handler.Doc {
	output := reflect.Zero(o.Output).Interface()
	d := handler.Doc{
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

// idempotency gives an answer again to who repeats a request under an Idempotency-Key.
type idempotency struct {
	replies records.Replies
	env     handler.Env
}

// Bounds of an Idempotency-Key: how long it is remembered, how long its answer may take to be kept, and how long it may
// be, in bytes.
const (
	keyLifetime = 24 * time.Hour
	keepFor     = 30 * time.Second
	maxKey      = 255
)

func idempotencyKey(req *handler.Request) (string, error) {
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
	req *handler.Request, key string, body []byte, refused func(error) error, do func() (handler.Response, error),
) (handler.Response, error) {
	if key == "" {
		return do()
	}
	sum := sha256.Sum256(body)
	owner := handler.Key(req.Principal.Actor)
	reply, err := k.replies.TakeKey(req.Context(), owner, key, hex.EncodeToString(sum[:]), keyLifetime)
	if err != nil {
		return handler.Response{}, refused(err)
	}
	if reply.Status != 0 {
		return handler.Response{Status: reply.Status, Bytes: reply.Body, ContentType: "application/json",
			Header: http.Header{"Idempotency-Replayed": {"true"}}}, nil
	}
	a, err := do()
	if err != nil {
		return handler.Response{}, err
	}
	a.Bytes, a.ContentType = handler.EncodeJSON(a.Value), "application/json"
	keeping, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), keepFor) // the caller may be gone
	defer cancel()
	if err := k.replies.KeepReply(keeping, owner, key, record.Reply{Status: a.Status, Body: a.Bytes}); err != nil {
		k.env.Log.Warn("answer not kept for its Idempotency-Key", "request_id", req.ID, "error",
			k.env.Redact(handler.Cause(err)))
	}
	return a, nil
}
