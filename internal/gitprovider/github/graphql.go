package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
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

// graphql sends an operation and decodes its data into out. The error is a *fault.Error, or a *refusal when the method
// may know better what it means; see publish.
func (p *Provider) graphql(ctx context.Context, op operation, out any) error {
	if op.write {
		ctx = transport.ForWrite(ctx)
	} else {
		ctx = transport.Safe(ctx)
	}
	body := map[string]any{"query": op.document, "variables": op.variables}
	req, err := p.client.NewRequest(http.MethodPost, p.graph.String(), body)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "a request to GitHub could not be built")
	}
	var raw bytes.Buffer
	resp, err := p.client.Do(ctx, req, &raw)
	if err != nil {
		return p.failed(err, op.need)
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
			return p.graphRefused(e, resp.Response, op)
		}
	}
	if len(answer.Data) == 0 || bytes.Equal(answer.Data, []byte("null")) {
		return notJSON(errors.New("neither data nor errors"))
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return notJSON(err)
	}
	return nil
}
