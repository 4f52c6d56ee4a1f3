package fakegitea

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// route is one method of one path template. A segment {name} stands for one segment, {name...} for the rest.
type route struct {
	method, template string
	handle           func(*call) (*answer, error)
	scope            string // category of token scopes; "" for routes that need none
	check            func(query url.Values, body []byte) []string
}

// table lists the routes: those that the adapter needs, and nothing that merges, approves or pushes.
func (s *Server) table(spec *spec) []route {
	const repo = "/repos/{owner}/{repo}"
	var out []route
	add := func(method, template, scope string, handle func(*call) (*answer, error)) {
		out = append(out, route{method, template, handle, scope, spec.checks(s.t, method, template)})
	}
	get, post, patch, put := http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut
	add(get, "/version", "", getVersion)
	add(get, "/settings/api", "", getAPISettings)
	add(get, "/user", "user", getSelf)
	add(get, repo, "repository", getRepo)
	add(get, repo+"/assignees", "repository", listAssignees)
	add(get, repo+"/branches", "repository", listBranches)
	add(get, repo+"/branches/{branch...}", "repository", getBranch)
	add(http.MethodDelete, repo+"/branches/{branch...}", "repository", deleteBranch)
	add(get, repo+"/branch_protections", "repository", listProtections)
	add(get, repo+"/signing-key.gpg", "repository", func(*call) (*answer, error) {
		return nil, refuse(http.StatusNotFound, "no signing key")
	})
	add(get, repo+"/branch_protections/{name}", "repository", getProtection)
	add(get, repo+"/git/trees/{sha}", "repository", getTree)
	add(get, repo+"/git/blobs/{sha}", "repository", getBlob)
	add(get, repo+"/git/commits/{sha}", "repository", getCommit)
	add(get, repo+"/git/refs", "repository", listRefs)
	add(get, repo+"/git/refs/{ref...}", "repository", listRefs)
	add(get, repo+"/contents", "repository", getContents)
	add(post, repo+"/contents", "repository", changeFiles)
	add(get, repo+"/contents/{filepath...}", "repository", getContents)
	add(get, repo+"/file-contents", "repository", getFilesByQuery)
	add(post, repo+"/file-contents", "repository", getFilesByBody)
	add(get, repo+"/compare/{basehead}", "repository", compareCommits)
	add(get, repo+"/pulls", "repository", listPulls)
	add(post, repo+"/pulls", "repository", openPull)
	add(get, repo+"/pulls/{index}", "repository", getPull)
	add(patch, repo+"/pulls/{index}", "repository", editPull)
	add(get, repo+"/pulls/{index}/files", "repository", listFiles)
	add(get, repo+"/pulls/{index}/reviews", "repository", listReviews)
	add(post, repo+"/pulls/{index}/reviews", "repository", createReview)
	add(get, repo+"/pulls/{index}/reviews/{id}/comments", "repository", listReviewComments)
	add(post, repo+"/pulls/{index}/requested_reviewers", "repository", requestReviews)
	add(get, repo+"/pulls/{base}/{head}", "repository", findPull)
	add(get, repo+"/issues", "issue", listIssues)
	add(patch, repo+"/issues/{index}", "issue", editIssue)
	add(get, repo+"/issues/{index}/comments", "issue", listComments)
	add(post, repo+"/issues/{index}/comments", "issue", createComment)
	add(get, repo+"/issues/{index}/labels", "issue", listIssueLabels)
	add(post, repo+"/issues/{index}/labels", "issue", addIssueLabels)
	add(put, repo+"/issues/{index}/labels", "issue", replaceIssueLabels)
	add(get, repo+"/labels", "issue", listLabels)
	add(post, repo+"/labels", "issue", createLabel)
	add(get, repo+"/commits/{ref}/status", "repository", combinedStatus)
	add(get, repo+"/commits/{ref}/statuses", "repository", listStatuses)
	add(get, repo+"/actions/workflows", "repository", listWorkflows)
	return out
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	if r.Method == http.MethodGet && r.URL.Path == s.root+"/swagger.v1.json" {
		s.describe(w)
		return
	}
	found, params, status := s.find(r)
	if status != 0 {
		s.report("fake Gitea: %s %s has no route (%d)", r.Method, r.URL.EscapedPath(), status)
		if status == http.StatusMethodNotAllowed {
			w.WriteHeader(status)
			return
		}
		s.refuse(w, noSuchRoute(), false)
		return
	}
	for _, problem := range found.check(r.URL.Query(), body) {
		s.report("fake Gitea: %s %s: %s", r.Method, r.URL.Path, problem)
	}
	c := &call{s: s, method: r.Method, escapedPath: r.URL.EscapedPath(), params: params, query: r.URL.Query(), body: body,
		json: &rendering{s: s}}
	ans, err := s.serve(c, found, r)
	if err != nil {
		var no *refusal
		if !errors.As(err, &no) {
			no = internalError(err.Error())
		}
		s.refuse(w, no, c.json.admin())
		return
	}
	ans.write(w)
}

// serve answers a request. The host is locked, but for what the answer wants to happen between checking and acting.
func (s *Server) serve(c *call, found *route, r *http.Request) (ans *answer, err error) {
	s.host.Locked(func() { ans, err = c.serve(found, r) })
	if err != nil || ans.then == nil {
		return ans, err
	}
	if ans.between != nil {
		ans.between()
	}
	then := ans.then
	s.host.Locked(func() { ans, err = then() })
	return ans, err
}

func (c *call) serve(found *route, r *http.Request) (*answer, error) {
	var err error
	if c.viewer, err = c.s.authenticate(r); err != nil {
		return nil, err
	}
	c.json.viewer = c.viewer
	if err := c.s.maySignIn(c.viewer); err != nil {
		return nil, err
	}
	if err := c.inScope(found.scope); err != nil {
		return nil, err
	}
	if c.params["repo"] != "" {
		target, err := c.enter()
		if err != nil {
			return nil, err
		}
		if target != "" {
			return redirect(c.method, target), nil
		}
	}
	if c.method != http.MethodGet && !strings.HasSuffix(found.template, "/file-contents") {
		if err := c.signedIn(); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(found.template, "/repos/{owner}/{repo}/pulls") && !c.at.takesPulls() {
		return nil, notFound()
	}
	return found.handle(c)
}

// takesPulls returns false for a repository without a commit, too.
func (r *repository) takesPulls() bool { return !r.st.Features.NoPulls && len(r.repo.Branches) > 0 }

// redirect returns a renamed repository's answer, to writes too. Only readers get a page.
func redirect(method, target string) *answer {
	ans := &answer{status: http.StatusMovedPermanently}
	ans.with("Location", target)
	if method == http.MethodGet {
		ans.with("Content-Type", "text/html; charset=utf-8")
		ans.page = "<a href=\"" + target + "\">Moved Permanently</a>.\n\n"
	}
	return ans
}

func (s *Server) refuse(w http.ResponseWriter, no *refusal, admin bool) {
	switch {
	case no.empty:
		w.WriteHeader(no.status)
	case no.plain:
		kind := "text/plain; charset=utf-8"
		if no.html {
			kind = "text/html; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(no.status)
		_, _ = io.WriteString(w, no.message)
	default:
		writeJSON(w, no.status, no.body(s.docs(), admin))
	}
}

// find matches a request, a slash at its end aside. A status means that there is no route: 404 or 405.
func (s *Server) find(r *http.Request) (*route, map[string]string, int) {
	rest, below := strings.CutPrefix(r.URL.EscapedPath(), s.root+apiRoot)
	if !below {
		return nil, nil, http.StatusNotFound
	}
	status := http.StatusNotFound
	segments := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	for i := range s.routes {
		params, fits := match(s.routes[i].template, segments)
		if fits && s.routes[i].method == r.Method {
			return &s.routes[i], params, 0
		}
		if fits {
			status = http.StatusMethodNotAllowed
		}
	}
	return nil, nil, status
}

// match compares escaped segments, so that an escaped slash belongs to a name.
func match(template string, segments []string) (map[string]string, bool) {
	params := map[string]string{}
	wanted := strings.Split(template, "/")
	for i, want := range wanted {
		name, isParam := strings.CutPrefix(strings.TrimSuffix(want, "}"), "{")
		name, rest := strings.CutSuffix(name, "...")
		if i >= len(segments) {
			return nil, false
		}
		have := segments[i]
		if rest {
			have = strings.Join(segments[i:], "/")
		}
		value, err := url.PathUnescape(have)
		switch {
		case err != nil, isParam && value == "", !isParam && value != want:
			return nil, false
		case isParam:
			params[name] = value
		}
		if rest {
			return params, true
		}
	}
	return params, len(wanted) == len(segments)
}

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

//nolint:gochecknoglobals // read once for all servers of the process; only the compiler changes, under its lock
var described = sync.OnceValues(newSpec)

func newSpec() (*spec, error) {
	s := &spec{compiler: jsonschema.NewCompiler()}
	raw, err := description.ReadFile("testdata/api.json")
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		return nil, fmt.Errorf("the API description cannot be read: %w", err)
	}
	for name, definition := range s.Definitions {
		s.Definitions[name] = tighten(definition)
	}
	err = s.compiler.AddResource(definitions, map[string]any{"definitions": s.Definitions})
	if err != nil {
		return nil, fmt.Errorf("the API description cannot be used: %w", err)
	}
	return s, nil
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
	route, known := s.Paths[strings.ReplaceAll(template, "...}", "}")][strings.ToLower(method)]
	if !known {
		t.Fatalf("the API description lacks %s %s", method, template)
	}
	types := map[string]string{}
	body := func() (*jsonschema.Schema, error) { return nil, nil }
	for _, p := range route.Parameters {
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
			problems = append(problems, fmt.Sprintf("the query parameter %q has not the type %s: %q", name, kind, values[0]))
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

// describe answers with a part of the API's description, which many servers do not have.
func (s *Server) describe(w http.ResponseWriter) {
	has := false
	s.host.Locked(func() { has = s.schema })
	if !has {
		http.Error(w, "Not found.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	_, _ = io.WriteString(w,
		`{"swagger":"2.0","definitions":{"PullRequest":{"properties":{"review_comments":{"type":"integer"}}}}}`)
}
