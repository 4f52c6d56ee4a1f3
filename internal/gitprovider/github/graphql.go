package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

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
	return decode(answer.Data, out)
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

func decode(raw json.RawMessage, out any) error {
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
	return decode(object[name], out)
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
	q.text("owner", repo.Owner)
	q.text("name", repo.Name)
	return q
}

func (q *query) variable(name, kind string, value any) {
	q.types[name], q.values[name] = kind, value
}

func (q *query) text(name, value string) { q.variable(name, "String!", value) }

// after makes a variable of a cursor and gives the argument that names it; "" for the first page.
func (q *query) after(cursor string) string {
	if cursor == "" {
		return ""
	}
	q.text("after", cursor)
	return ", after: $after"
}

// add selects a field of the repository.
func (q *query) add(field string) { q.fields = append(q.fields, field) }

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

// ask sends a query and gives what it answers about the repository; not_found if there is none.
func ask[T any](ctx context.Context, a *api, q *query, n need) (*T, error) {
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

// follow gives the nodes of a list from its first page on. next reads the page after another one; nil ends the list
// there.
func follow[T any](first *connection[T], next func(last *connection[T]) (*connection[T], error)) ([]*T, error) {
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
