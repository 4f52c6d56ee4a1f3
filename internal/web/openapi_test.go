package web_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// description is the document that the server gives out.
type description struct {
	*testing.T
	raw   any
	paths map[string]map[string]any
}

func describe(t *testing.T, w *world) description {
	t.Helper()
	a := w.get("/openapi.json")
	w.want(a, 200, "")
	d := description{T: t, paths: map[string]map[string]any{}}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	must.Do(t, err)
	d.raw = raw
	for path, item := range a.json["paths"].(map[string]any) {
		d.paths[path] = item.(map[string]any)
	}
	return d
}

// at is the schema at a JSON pointer of the document, ready to validate.
func (d description) at(pointer string) *jsonschema.Schema {
	d.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	must.Do(d, compiler.AddResource("urn:openapi", d.raw))
	schema, err := compiler.Compile("urn:openapi#" + pointer)
	if err != nil {
		d.Fatalf("%s: %v", pointer, err)
	}
	return schema
}

// match finds the path of the document that an address belongs to.
func (d description) match(target string) string {
	address, _, _ := strings.Cut(target, "?")
	best := ""
	for path := range d.paths {
		form := "^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, `[^/]+`) + "$"
		if regexp.MustCompile(form).MatchString(address) && (best == "" || !strings.Contains(path, "{")) {
			best = path
		}
	}
	return best
}

func (d description) check(method, target string, a reply) {
	d.Helper()
	path := d.match(target)
	status := fmt.Sprint(a.StatusCode)
	responses, _ := d.paths[path][strings.ToLower(method)].(map[string]any)["responses"].(map[string]any)
	if _, described := responses[status]; !described {
		if status[0] < '4' {
			d.Errorf("%s %s: the status %s is not described", method, path, status)
		}
		status = "default"
		if a.StatusCode < 500 {
			status = "4XX"
		}
	}
	kind := a.Header.Get("Content-Type")
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	schema := d.at("/paths/" + escape.Replace(path) + "/" + strings.ToLower(method) + "/responses/" + status +
		"/content/" + escape.Replace(kind) + "/schema")
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	must.Do(d, err)
	if err := schema.Validate(value); err != nil {
		d.Errorf("%s %s does not match its description: %v\n%s", method, target, err, a.body)
	}
}

func TestAnswersAreAsTheyAreDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	d := describe(t, w)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	opened := w.attempts()[0].RequestID
	running := w.begun(sessions.Record{ID: "run-1",
		Handover: sessions.Handover{Handoff: &sessions.Handoff{Version: 1, RecommendedTier: 2}}})
	for _, c := range [][3]string{
		{"GET", "/api/v1/sessions", ""}, {"GET", "/api/v1/sessions/" + running, ""},
		{"GET", "/api/v1/sessions/" + running + "/events", ""},
		{"GET", "/api/v1/sessions/none", ""}, {"POST", "/api/v1/sessions", `{"tier":1}`},
		{"POST", "/api/v1/sessions/none/stop", ""},
		{"POST", "/api/v1/prs", request(nil)}, {"POST", "/api/v1/prs", request(map[string]any{"tier": 3})},
		{"POST", "/api/v1/prs", request(files(file("checks/inodes.md", "create", "# Other\n")))},
		{"GET", "/api/v1/prs?repo_owner=joe&repo_name=infra", ""},
		{"GET", "/api/v1/prs/1?repo_owner=joe&repo_name=infra", ""},
		{"GET", "/api/v1/proposals", ""}, {"GET", "/api/v1/proposals/" + opened, ""},
		{"GET", "/api/v1/proposals/nothing", ""},
		{"POST", "/api/v1/proposals/" + opened + "/promote", ""}, {"GET", "/api/v1/audit", ""},
		{"GET", "/api/v1/audit/verify", ""},
		{"GET", "/api/v1/providers", ""}, {"GET", "/api/v1/policy", ""},
		{"POST", "/api/v1/policy/check", `{"paths":["checks/x.md","a.go"]}`},
		{"GET", "/api/v1/health", ""}, {"GET", "/api/v1/me", ""}, {"GET", "/healthz", ""}, {"GET", "/readyz", ""},
		{"GET", "/readyz?x=1", ""},
		{"GET", "/openapi.json", ""}, {"GET", "/api/v1/proposals?limit=x", ""}, {"POST", "/sign-in", `{}`},
	} {
		d.check(c[0], c[1], w.do(c[0], c[1], c[2]))
	}
	dry := newWorld(t, func(w *world) { w.flow.Authority.DryRun = true })
	d.check("POST", "/api/v1/prs", dry.do("POST", "/api/v1/prs", request(nil)))
}

func TestTheDescriptionHasEveryRouteAndIsTheSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.get("/openapi.json")
	var text bytes.Buffer
	must.Do(t, json.Indent(&text, a.body, "", "  "))
	text.WriteByte('\n')
	operationtest.Golden(t, filepath.Join("testdata", "openapi.json"), text.Bytes())
	if a.json["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", a.json["openapi"])
	}
	person := w.person
	w.person = ""
	ids := map[string]bool{}
	for path, item := range a.json["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			op := op.(map[string]any)
			id, _ := op["operationId"].(string)
			if id == "" || ids[id] || op["summary"] == "" {
				t.Errorf("%s %s: operationId %q, summary %v", method, path, id, op["summary"])
			}
			ids[id] = true
			security, _ := op["security"].([]any)
			secured := len(security) > 0
			target := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "1")
			stranger := w.do(strings.ToUpper(method), target, "{}", from("192.0.2.1:1"), header("X-Forwarded-For", "192.0.2.2"))
			if refused := stranger.StatusCode == http.StatusUnauthorized; refused != secured && path != "/sign-in" {
				t.Errorf("%s %s: described as secured %t, a stranger gets %d", method, path, secured, stranger.StatusCode)
			}
		}
	}
	w.person = person
	if page := string(w.get("/docs").body); !strings.Contains(page, "POST /api/v1/prs") || strings.Contains(page, "://") ||
		strings.Contains(page, "style=") {
		t.Error("the page lacks an operation, or refers to another site, or has styles that the policy refuses")
	}
}

// The pages for people say what the description says: types, limits, values. Each operation and type has one, and no
// link of them is dead.
func TestThePagesOfTheAPIShowTypesAndLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for address, want := range map[string][]string{
		"/docs":                 {"POST /api/v1/prs"},
		"/docs?q=create+pull":   {"POST /api/v1/prs"},
		"/docs?q=no+such+thing": {"No operation fits"},
		"/docs/createPR": {"/api/v1/prs", "CreateRequest", "at most 72 characters", "list of FileRequest",
			`"demo"`},
		"/docs/listProposals":       {"dry_run", "date-time", "For example demo/home-cluster."},
		"/docs/types/CreateRequest": {"repo_owner required", "Used by"},
		"/docs/types/Problem":       {"retry_after_seconds"},
	} {
		w.page(address, 200).has(want...)
	}
	w.page("/docs/nothing", 404)
	w.page("/docs/types/Nothing", 404)
	seen := map[string]bool{}
	for queue := []string{"/docs"}; len(queue) > 0; queue = queue[1:] {
		if at := queue[0]; !seen[at] {
			seen[at] = true
			for _, link := range w.page(at, 200).links() {
				if strings.HasPrefix(link, "/docs/") {
					queue = append(queue, link)
				}
			}
		}
	}
	if !seen["/docs/createPR"] || !seen["/docs/types/FileRequest"] {
		t.Errorf("%d pages", len(seen))
	}
}

func TestExamplesOfBodiesAreGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	d := describe(t, w)
	found := 0
	for path, item := range d.paths {
		op, _ := item["post"].(map[string]any)
		body, _ := op["requestBody"].(map[string]any)
		if body == nil {
			continue
		}
		kind := "application/json"
		content := body["content"].(map[string]any)
		if content[kind] == nil {
			kind = "application/octet-stream"
		}
		example := content[kind].(map[string]any)["example"]
		if example == nil {
			t.Errorf("%s has no example", path)
			continue
		}
		found++
		escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
		schema := d.at("/paths/" + escape.Replace(path) + "/post/requestBody/content/" + escape.Replace(kind) + "/schema")
		if err := schema.Validate(example); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if found < 4 {
		t.Errorf("%d examples", found)
	}
}

// names are values as a query has them.
func names[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// TestWhatTheDescriptionListsIsAllThatThereIs compares the values of parameters with where they are defined.
func TestWhatTheDescriptionListsIsAllThatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	d := describe(t, w)
	for _, c := range []struct {
		path, parameter string
		want            []string
	}{
		{"/api/v1/proposals", "pull", names(record.PullStates())},
		{"/api/v1/audit", "pull", names(record.PullStates())}, {"/api/v1/sessions", "state", names(sessions.States())},
	} {
		var got []string
		for _, p := range d.paths[c.path]["get"].(map[string]any)["parameters"].([]any) {
			if p := p.(map[string]any); p["name"] == c.parameter {
				for _, value := range p["schema"].(map[string]any)["enum"].([]any) {
					got = append(got, value.(string))
				}
			}
		}
		if strings.Join(got, ",") != strings.Join(c.want, ",") {
			t.Errorf("%s, %s: %v, want %v", c.path, c.parameter, got, c.want)
		}
		page := strings.TrimPrefix(c.path, "/api/v1")
		for _, value := range c.want {
			if a := w.get(page + "?" + c.parameter + "=" + value); page != "/audit" && a.StatusCode != 200 &&
				a.StatusCode != 303 {
				t.Errorf("the page %s does not know %s", page, value)
			}
		}
	}
}

// docs/reference/rest.md is made from the description of the API: `make golden` writes it.
func TestThePageOfRESTIsMadeFromTheDescription(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "openapi.json"))
	must.Do(t, err)
	type operation struct {
		Summary, Description, Method, Path string
		Tags                               []string
	}
	var described struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	must.Do(t, json.Unmarshal(text, &described))
	var all []operation
	for path, methods := range described.Paths {
		for method, o := range methods {
			o.Path, o.Method = path, strings.ToUpper(method)
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b operation) int {
		return cmp.Or(strings.Compare(strings.Join(a.Tags, " "), strings.Join(b.Tags, " ")), strings.Compare(a.Path, b.Path),
			strings.Compare(a.Method, b.Method))
	})
	var b strings.Builder
	b.WriteString(
		"# REST\n\n<!-- Written by `make golden` from the description of the API; edit the operations in the code. -->\n\n" +
			"Every route of `claudeops serve` for programs. `/openapi.json` has fields and answers; [Call the REST " +
			"API](../guides/rest.md) says how.\n")
	tag := "-"
	scope := regexp.MustCompile(`Needs the scope (\w+)`)
	for _, o := range all {
		if its := strings.Join(o.Tags, " "); its != tag {
			tag = its
			fmt.Fprintf(&b, "\n## %s\n\n| request | what | scope |\n|---|---|---|\n", cmp.Or(tag, "server"))
		}
		needs := ""
		if found := scope.FindStringSubmatch(o.Description); found != nil {
			needs = found[1]
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s |\n", o.Method, o.Path, strings.ReplaceAll(o.Summary, "|", `\|`), needs)
	}
	if len(all) < 20 {
		t.Fatalf("only %d routes", len(all))
	}
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "rest.md"), []byte(b.String()))
}

// Messages are put together of parts, and so may say "the the body".
func TestNoMessageAboutABodySaysAWordTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.signedIn()
	word := regexp.MustCompile(`[a-z]+`)
	for _, target := range []string{"/api/v1/prs", "/api/v1/policy/check", "/api/v1/sessions", "/sign-in"} {
		for _, body := range []string{"{", "x", "{}{}", "[]", `{"a":1}`, `{"tier":"x","paths":7}`, strings.Repeat("[", 100),
			strings.Repeat(" ", 1<<23)} {
			a := w.do(http.MethodPost, target, body)
			if a.StatusCode < 400 {
				continue
			}
			before := ""
			for _, now := range word.FindAllString(strings.ToLower(string(a.body)), -1) {
				if now == before && now != "x" {
					t.Errorf("POST %s: %q twice in a row in %s", target, now, a.body)
				}
				before = now
			}
		}
	}
}

// riddles are words that only somebody who has read the code understands. internal/cli has the same list for the
// commands.
func riddles() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(the( \w+)? door|what spoke|for real|remarks?)\b`)
}

func TestPagesAndDescriptionSpeakPlainly(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("pages/templates/*.html")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	notes, err := filepath.Glob("dashboard/*.go")
	if err != nil || len(notes) < 10 {
		t.Fatalf("%d files of the dashboard, %v", len(notes), err)
	}
	for _, file := range append(append(files, notes...), "testdata/openapi.json") {
		text, err := os.ReadFile(file)
		must.Do(t, err)
		for n, line := range strings.Split(string(text), "\n") {
			if found := riddles().FindString(line); found != "" {
				t.Errorf("%s:%d says %q", file, n+1, found)
			}
		}
	}
}
