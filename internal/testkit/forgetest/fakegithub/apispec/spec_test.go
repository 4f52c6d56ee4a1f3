package apispec

import (
	"net/url"
	"strings"
	"testing"
)

const sample = `{"operations": {"POST /cats/{id}": {
	"path": {"id": {"type": "integer"}}, "query": {"loud": {"type": "boolean"}},
	"body": {"type": "object", "properties": {"name": {"$ref": "#/$defs/name"}}, "required": ["name"]}, "bodyRequired": true,
	"responses": {"201": {"$ref": "#/$defs/name"}, "204": null}}},
	"$defs": {"name": {"type": "string", "minLength": 1}, "basic-error": {"type": "object", "required": ["message"],
		"properties": {"message": {"type": "string"}}}}}`

func load(t *testing.T) *Spec {
	t.Helper()
	s, err := Load([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRequestsAreHeldAgainstTheDescription(t *testing.T) {
	s := load(t)
	for name, row := range map[string]struct {
		id, query, body, want string
	}{
		"fits":                        {"7", "loud=true", `{"name": "Tom"}`, ""},
		"a path of another type":      {"x", "", `{"name": "Tom"}`, "path parameter id"},
		"a query of another type":     {"7", "loud=very", `{"name": "Tom"}`, "query parameter loud"},
		"an unknown query parameter":  {"7", "quiet=1", `{"name": "Tom"}`, "quiet is unknown"},
		"no body":                     {"7", "", "", "not JSON"},
		"a body that is broken":       {"7", "", "{", "not JSON"},
		"a body without what it must": {"7", "", "{}", "name"},
		"a body that does not match":  {"7", "", `{"name": ""}`, "name"},
		"a body with an unknown name": {"7", "", `{"name": "Tom", "age": 3}`, "unknown field age"},
	} {
		query, err := url.ParseQuery(row.query)
		if err != nil {
			t.Fatal(err)
		}
		wrong := s.CheckRequest("POST /cats/{id}", map[string]string{"id": row.id}, query, []byte(row.body))
		if (row.want == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, "\n"), row.want) {
			t.Errorf("%s: got %q, want %q", name, wrong, row.want)
		}
	}
	if wrong := s.CheckRequest("GET /dogs", nil, nil, nil); len(wrong) != 1 {
		t.Errorf("an unknown route: %q", wrong)
	}
}

func TestAnswersAreHeldAgainstTheDescription(t *testing.T) {
	s := load(t)
	for name, row := range map[string]struct {
		status int
		body   string
		fits   bool
	}{
		"fits":                   {201, `"Tom"`, true},
		"does not match":         {201, `""`, false},
		"has no body":            {204, "", true},
		"should have no body":    {204, `"Tom"`, false},
		"an unknown success":     {200, `"Tom"`, false},
		"an error of every kind": {401, `{"message": "no"}`, true},
		"an error without words": {401, `{}`, false},
	} {
		if err := s.CheckResponse("POST /cats/{id}", row.status, []byte(row.body)); (err == nil) != row.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
