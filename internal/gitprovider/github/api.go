package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// api makes the requests, by REST and by GraphQL. Errors are a *fault.Error, or a *refusal when the method may know
// better what it means; fault.From finds the fault in it.
type api struct {
	root, graph *url.URL
	over        *transport.Transport
	refusals    refusals
	fresh       newObjects
	app         *githubapp.App // nil for a token of a user
}

func newAPI(opts Options, refusals refusals, clock transport.Clock) *api {
	root := *opts.API
	if !strings.HasSuffix(root.Path, "/") {
		root = *root.JoinPath("/")
	}
	return &api{root: &root, graph: graphQLAddress(&root), over: opts.Client, refusals: refusals,
		fresh: newObjects{forge.NewLRU[string, time.Time](maxNew, nil), clock.Now, clock.Sleep}, app: opts.App}
}

// client returns the library's client for one request. It keeps in mind that a limit was reached and answers in
// GitHub's stead until that ends, whatever token the next request carries: that of another owner's installation, or a
// new one. GitHub's own answers say how long to wait.
func (a *api) client() *gogithub.Client {
	client := gogithub.NewClient(a.over.Client())
	client.BaseURL = a.root
	return client
}

// graphQLAddress returns the address of GraphQL. An Enterprise Server has REST at /api/v3 and GraphQL at /api/graphql
// (docs.github.com, "Forming calls with GraphQL"); github.com has it at /graphql below the API's root.
func graphQLAddress(api *url.URL) *url.URL {
	root := *api
	if above, found := strings.CutSuffix(strings.TrimSuffix(api.Path, "/"), "/api/v3"); found {
		root.Path, root.RawPath = above+"/api/", ""
	}
	return transport.URL(&root, "graphql")
}

// restRequest is one REST request.
type restRequest struct {
	method string
	url    *url.URL
	body   any    // sent as JSON; nil for none
	accept string // "" means GitHub's JSON
	need   need
}

// rawBlob is the media type for which GitHub answers with a blob's bytes instead of JSON.
const rawBlob = "application/vnd.github.raw+json"

// pageSize is the largest page of a REST list and of a GraphQL connection.
const pageSize = 100

// send sends a REST request and decodes the JSON of its answer into out; a *[]byte gets the bytes as they are, nil
// nothing.
func (a *api) send(ctx context.Context, r restRequest, out any) (resp *gogithub.Response, err error) {
	if r.method != http.MethodGet {
		ctx = transport.ForWrite(ctx)
	}
	err = a.withNewToken(ctx, r.need, func() error {
		resp, err = a.sendOnce(ctx, r, out)
		return err
	})
	return resp, err
}

// withNewToken does a request again after 1, 2 and 3 seconds if it is refused for a token of an app that was just made.
// A request that is refused for its token was not done, so that this holds for writes, too.
func (a *api) withNewToken(ctx context.Context, n need, do func() error) error {
	err := do()
	for wait := time.Second; wait <= 3*time.Second; wait += time.Second {
		r := asRefusal(err)
		isOfToken := r != nil && (r.status == http.StatusUnauthorized ||
			n != needActions && r.says("resource not accessible by integration")) // an installation need not grant it
		if !isOfToken || a.app == nil || !a.app.IsNew(transport.UseOf(ctx)) || ctx.Err() != nil {
			break
		}
		a.fresh.sleep(ctx, wait)
		err = do()
	}
	return err
}

func (a *api) sendOnce(ctx context.Context, r restRequest, out any) (*gogithub.Response, error) {
	client := a.client()
	req, err := client.NewRequest(r.method, r.url.String(), r.body)
	if err != nil {
		return nil, forge.NotBuilt(err)
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	var body bytes.Buffer
	resp, err := client.Do(ctx, req, &body)
	if err != nil {
		return nil, a.refusals.translate(err, r.need)
	}
	switch into := out.(type) {
	case nil:
	case *[]byte:
		*into = body.Bytes()
	default:
		if err := json.Unmarshal(body.Bytes(), out); err != nil {
			return nil, notJSON(err)
		}
	}
	return resp, nil
}

func (a *api) get(ctx context.Context, u *url.URL, n need, out any) (*gogithub.Response, error) {
	return a.send(ctx, restRequest{method: http.MethodGet, url: u, need: n}, out)
}

// postTo is post to a pull request, which may be new.
func (a *api) postTo(ctx context.Context, repo gitprovider.RepoRef, number int, u *url.URL, body, out any) error {
	err := a.fresh.onPull(ctx, repo, number, func() error { return a.post(ctx, u, needPulls, body, out) })
	return a.refusals.pullMissing(err, repo, number)
}

func (a *api) post(ctx context.Context, u *url.URL, n need, body, out any) error {
	_, err := a.send(ctx, restRequest{method: http.MethodPost, url: u, body: body, need: n}, out)
	return err
}

// changePull replaces fields of a pull request, and gives its state after that.
func (a *api) changePull(ctx context.Context, repo gitprovider.RepoRef, number int,
	fields map[string]string) (gitprovider.State, error) {
	if err := forge.CheckNumber(repo, number); err != nil {
		return "", err
	}
	var now forge.Changed
	at := a.repoURL(repo, "pulls", strconv.Itoa(number))
	err := a.fresh.onPull(ctx, repo, number, func() error {
		_, err := a.send(ctx, restRequest{method: http.MethodPatch, url: at, body: fields, need: needPulls}, &now)
		return err
	})
	return now.PullState(), a.refusals.pullMissing(err, repo, number)
}

// repoURL returns an address below a repository.
func (a *api) repoURL(ref gitprovider.RepoRef, segments ...string) *url.URL {
	return transport.URL(a.root, append([]string{"repos", ref.Owner, ref.Name}, segments...)...)
}

// pageURL adds to a list's address which of its pages is wanted, 1 being the first.
func pageURL(u *url.URL, number int) *url.URL {
	out := *u
	out.RawQuery = url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(number)}}.Encode()
	return &out
}

func notJSON(err error) error { return forge.NotItsAPI(err, "GitHub", urlVariable) }

// operation is one GraphQL request.
type operation struct {
	document  string
	variables map[string]any
	write     bool // a mutation, which is never sent twice
	need      need
	// tolerate says which errors the caller reads from the data being null; nil none.
	tolerate func(graphError) bool
}

// mutation returns a write to a branch.
func mutation(document string, variables map[string]any) operation {
	return operation{document: document, variables: variables, write: true, need: needContents}
}

// graphError is one of the errors of a GraphQL answer.
type graphError struct {
	Type       string `json:"type"`
	Path       []any  `json:"path"`
	Message    string `json:"message"`
	Extensions struct {
		Code string `json:"code"` // set by the check of the document before anything was executed
		SAML bool   `json:"saml_failure"`
	} `json:"extensions"`
}

// under reports whether the error's path has the field.
func (e graphError) under(field string) bool { return slices.Contains(e.Path, any(field)) }

// graphql sends an operation and decodes its data into out.
func (a *api) graphql(ctx context.Context, op operation, out any) error {
	if op.write {
		ctx = transport.ForWrite(ctx)
	} else {
		ctx = transport.Safe(ctx)
	}
	return a.withNewToken(ctx, op.need, func() error { return a.graphqlOnce(ctx, op, out) })
}

func (a *api) graphqlOnce(ctx context.Context, op operation, out any) error {
	body := map[string]any{"query": op.document, "variables": op.variables}
	client := a.client()
	req, err := client.NewRequest(http.MethodPost, a.graph.String(), body)
	if err != nil {
		return forge.NotBuilt(err)
	}
	var raw bytes.Buffer
	resp, err := client.Do(ctx, req, &raw)
	if err != nil {
		return a.refusals.translate(err, op.need)
	}
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []graphError    `json:"errors"`
	}
	if err := json.Unmarshal(raw.Bytes(), &answer); err != nil {
		return notJSON(err)
	}
	for _, e := range answer.Errors {
		if op.tolerate == nil || !op.tolerate(e) {
			return a.refusals.translateGraphQL(e, resp.Response, op)
		}
	}
	if isNull(answer.Data) {
		return notJSON(errors.New("neither data nor errors"))
	}
	return decodeJSON(answer.Data, out)
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

func decodeJSON(raw json.RawMessage, out any) error {
	if err := json.Unmarshal(raw, out); err != nil {
		return notJSON(err)
	}
	return nil
}

// decodeField decodes one field of an object; one that is missing or null leaves out as it is.
func decodeField(object map[string]json.RawMessage, name string, out any) error {
	if isNull(object[name]) {
		return nil
	}
	return decodeJSON(object[name], out)
}

// query builds a GraphQL query about one repository. Every value travels in a variable; documents hold only names that
// this package chose.
type query struct {
	types     map[string]string // of the variables
	values    map[string]any
	fields    []string
	fragments string
	tolerate  func(graphError) bool
}

func newQuery(repo gitprovider.RepoRef) *query {
	q := &query{types: map[string]string{}, values: map[string]any{}}
	q.textVariable("owner", repo.Owner)
	q.textVariable("name", repo.Name)
	return q
}

func (q *query) variable(name, kind string, value any) {
	q.types[name], q.values[name] = kind, value
}

func (q *query) textVariable(name, value string) { q.variable(name, "String!", value) }

// cursorArgument makes a variable of a cursor and gives the argument that names it; "" for the first page.
func (q *query) cursorArgument(cursor string) string {
	if cursor == "" {
		return ""
	}
	q.textVariable("after", cursor)
	return ", after: $after"
}

// selectField selects a field of the repository.
func (q *query) selectField(field string) { q.fields = append(q.fields, field) }

func (q *query) fragment(text string) { q.fragments += text }

func (q *query) operation(n need) operation {
	var variables []string
	for _, name := range slices.Sorted(maps.Keys(q.types)) {
		variables = append(variables, "$"+name+": "+q.types[name])
	}
	document := "query(" + strings.Join(variables, ", ") + ") {\n  repository(owner: $owner, name: $name) {\n    " +
		strings.Join(q.fields, "\n    ") + "\n  }\n}\n" + q.fragments
	return operation{document: document, variables: q.values, need: n, tolerate: q.tolerate}
}

// queryRepository sends a query and gives what it answers about the repository; not_found if there is none.
func queryRepository[T any](ctx context.Context, a *api, q *query, n need) (*T, error) {
	var data struct{ Repository *T }
	if err := a.graphql(ctx, q.operation(n), &data); err != nil {
		return nil, err
	}
	if data.Repository == nil {
		return nil, a.refusals.notFound()
	}
	return data.Repository, nil
}

type pageInfo struct {
	HasNextPage bool
	EndCursor   string
}

// connection is a page of a list as GraphQL answers it. A node that the token may not see is nil.
type connection[T any] struct {
	PageInfo pageInfo
	Nodes    []*T
}

// collectPages gives the nodes of a list from its first page on. next reads the page after another one; nil ends the
// list there.
func collectPages[T any](first *connection[T], next func(last *connection[T]) (*connection[T], error)) ([]*T, error) {
	var all []*T
	for at := first; at != nil; {
		for _, n := range at.Nodes {
			if n != nil {
				all = append(all, n)
			}
		}
		if !at.PageInfo.HasNextPage {
			break
		}
		further, err := next(at)
		if err != nil {
			return nil, err
		}
		if further != nil && at.PageInfo.EndCursor == "" {
			return nil, fault.New(fault.UpstreamError, "GitHub promised more than it showed; try again later")
		}
		at = further
	}
	return all, nil
}
