package fakegitea

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed testdata/api.json
var description embed.FS

// spec is the server's API description, trimmed to the routes that there are.
type spec struct {
	Paths       map[string]map[string]operation `json:"paths"`
	Definitions map[string]any                  `json:"definitions"`
	mu          sync.Mutex                      // of the compiler
	compiler    *jsonschema.Compiler
}

type operation struct {
	Parameters []struct {
		Name   string            `json:"name"`
		In     string            `json:"in"`
		Type   string            `json:"type"`
		Schema map[string]string `json:"schema"`
	} `json:"parameters"`
}

const definitions = "mem:///definitions"

func newSpec(t testing.TB) *spec {
	t.Helper()
	s := &spec{compiler: jsonschema.NewCompiler()}
	raw, err := description.ReadFile("testdata/api.json")
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		t.Fatalf("the API description cannot be read: %v", err)
	}
	for name, definition := range s.Definitions {
		s.Definitions[name] = tighten(definition)
	}
	err = s.compiler.AddResource(definitions, map[string]any{"definitions": s.Definitions})
	if err != nil {
		t.Fatalf("the API description cannot be used: %v", err)
	}
	return s
}

// tighten makes a schema that knows no further members. null is the same as an absent member, as in the server's
// decoder; whether a member is required the routes decide, whose refusals are the server's.
func tighten(schema any) any {
	object, isObject := schema.(map[string]any)
	if !isObject {
		return schema
	}
	if properties, has := object["properties"].(map[string]any); has {
		for name, property := range properties {
			properties[name] = map[string]any{"anyOf": []any{tighten(property), map[string]any{"type": "null"}}}
		}
		object["additionalProperties"] = false
		delete(object, "required")
	}
	return object
}

// checks gives the check of one route: what is wrong with a query and a body.
func (s *spec) checks(t testing.TB, method, template string) func(url.Values, []byte) []string {
	t.Helper()
	described, known := s.Paths[strings.ReplaceAll(template, "...}", "}")][strings.ToLower(method)]
	if !known {
		t.Fatalf("the API description lacks %s %s", method, template)
	}
	types := map[string]string{}
	body := func() (*jsonschema.Schema, error) { return nil, nil }
	for _, p := range described.Parameters {
		if p.In != "body" {
			types[p.Name] = p.Type
			continue
		}
		// most routes are never asked
		body = sync.OnceValues(func() (*jsonschema.Schema, error) { return s.compile(p.Schema["$ref"]) })
	}
	return func(query url.Values, raw []byte) []string {
		schema, err := body()
		if err != nil {
			return []string{fmt.Sprintf("the API description of %s %s cannot be used: %v", method, template, err)}
		}
		return append(checkQuery(types, query), checkBody(schema, raw)...)
	}
}

func (s *spec) compile(reference string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compiler.Compile(definitions + reference)
}

func checkQuery(types map[string]string, query url.Values) (problems []string) {
	for name, values := range query {
		kind, known := types[name]
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("the API has no query parameter %q here", name))
		case kind != "array" && len(values) > 1:
			problems = append(problems, fmt.Sprintf("the query parameter %q is there %d times", name, len(values)))
		case !valid(kind, values[0]):
			problems = append(problems, fmt.Sprintf("the query parameter %q is no %s: %q", name, kind, values[0]))
		}
	}
	slices.Sort(problems)
	return problems
}

func valid(kind, value string) bool {
	var err error
	switch kind {
	case "integer":
		_, err = strconv.ParseInt(value, 10, 64)
	case "boolean":
		_, err = strconv.ParseBool(value)
	}
	return err == nil
}

func checkBody(schema *jsonschema.Schema, raw []byte) []string {
	if schema == nil {
		if len(raw) > 0 {
			return []string{"the API takes no body here"}
		}
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return []string{"the body is not JSON"}
	}
	if err := schema.Validate(value); err != nil {
		return []string{"the body is not as described: " + err.Error()}
	}
	return nil
}
