// Package apispec checks requests and answers against the description of a REST API: the operations of an OpenAPI
// document, trimmed and rewritten as JSON Schema (see the README beside the document).
package apispec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is the name under which the schemas of a Spec find one another.
const document = "https://github.example/openapi.json"

// Spec is a description. It is safe for concurrent use.
type Spec struct {
	operations map[string]operation

	mu       sync.Mutex // guards what follows
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

type operation struct {
	ID           string                     `json:"id"`
	Path         map[string]schema          `json:"path"`
	Query        map[string]schema          `json:"query"`
	Body         *schema                    `json:"body"`
	BodyRequired bool                       `json:"bodyRequired"`
	Responses    map[string]json.RawMessage `json:"responses"`
}

// schema holds the parts of a schema that are needed to read a string as its type.
type schema struct {
	Ref        string                     `json:"$ref"`
	Type       any                        `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// Load reads a description.
func Load(raw []byte) (*Spec, error) {
	var doc struct {
		Operations map[string]operation `json:"operations"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(document, whole); err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	return &Spec{operations: doc.Operations, compiler: compiler, compiled: map[string]*jsonschema.Schema{}}, nil
}

// Routes lists the operations, each as its method and its path template: "GET /repos/{owner}/{repo}".
func (s *Spec) Routes() []string {
	var out []string
	for route := range s.operations {
		out = append(out, route)
	}
	slices.Sort(out)
	return out
}

// CheckRequest lists what does not fit in a request for a route: parameters that are unknown or of another type, a body
// that is missing, has unknown fields or does not match.
func (s *Spec) CheckRequest(route string, path map[string]string, query url.Values, body []byte) []string {
	op, known := s.operations[route]
	if !known {
		return []string{"the description has no " + route}
	}
	var wrong []string
	for name, value := range path {
		wrong = append(wrong, s.parameter(route, "path", name, value, op.Path)...)
	}
	for name, values := range query {
		for _, value := range values {
			wrong = append(wrong, s.parameter(route, "query", name, value, op.Query)...)
		}
	}
	return append(wrong, s.body(route, op, body)...)
}

func (s *Spec) parameter(route, in, name, value string, declared map[string]schema) []string {
	sch, known := declared[name]
	if !known {
		return []string{fmt.Sprintf("%s parameter %s is unknown", in, name)}
	}
	var v any = value
	switch sch.Type {
	case "integer":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			v = json.Number(strconv.FormatInt(n, 10))
		}
	case "boolean":
		if b, err := strconv.ParseBool(value); err == nil {
			v = b
		}
	}
	if err := s.validate(v, "operations", route, in, name); err != nil {
		return []string{fmt.Sprintf("%s parameter %s=%q: %v", in, name, value, err)}
	}
	return nil
}

func (s *Spec) body(route string, op operation, body []byte) []string {
	switch {
	case op.Body == nil && len(body) > 0:
		return []string{"a body where none is expected"}
	case op.Body == nil || (len(body) == 0 && !op.BodyRequired):
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return []string{fmt.Sprintf("the body is not JSON: %v", err)}
	}
	var wrong []string
	if m, isObject := v.(map[string]any); isObject && op.Body.Properties != nil {
		for name := range m {
			if op.Body.Properties[name] == nil {
				wrong = append(wrong, fmt.Sprintf("the body has the unknown field %s", name))
			}
		}
	}
	if err := s.validate(v, "operations", route, "body"); err != nil {
		wrong = append(wrong, fmt.Sprintf("the body: %v", err))
	}
	return wrong
}

// CheckResponse says what does not fit in an answer: a success that the description does not name, or a body that does
// not match the schema of its status. Failures for which it has none, such as 401, are held against its basic error.
func (s *Spec) CheckResponse(route string, status int, body []byte) error {
	op, known := s.operations[route]
	if !known {
		return fmt.Errorf("the description has no %s", route)
	}
	code := strconv.Itoa(status)
	raw, described := op.Responses[code]
	place := []string{"operations", route, "responses", code}
	if bodiless := string(raw) == "null"; !described || bodiless {
		switch {
		case bodiless && len(body) == 0:
			return nil
		case status < 300:
			return fmt.Errorf("%s: the status %d, or a body with it, is not described", route, status)
		}
		place = []string{"$defs", "basic-error"}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: the body is not JSON: %w", route, err)
	}
	if err := s.validate(v, place...); err != nil {
		return fmt.Errorf("%s %d: %w", route, status, err)
	}
	return nil
}

// validate checks a value against the schema at a place in the document.
func (s *Spec) validate(v any, place ...string) error {
	var pointer strings.Builder
	for _, part := range place {
		part = strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
		pointer.WriteString("/" + url.PathEscape(part))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := document + "#" + pointer.String()
	if s.compiled[at] == nil {
		compiled, err := s.compiler.Compile(at)
		if err != nil {
			return fmt.Errorf("the schema %s: %w", at, err)
		}
		s.compiled[at] = compiled
	}
	return s.compiled[at].Validate(v)
}
