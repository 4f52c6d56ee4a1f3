package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/httpx"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/access"
)

// Every operation through every way in, on one local repository.

const doorToken = "a-token-of-the-door-tests"

type doors struct {
	*localWorld
	token   string // of requests over REST
	more    []operation.Toolset
	servers map[string]http.Handler // that were made for REST, by their environment
	shells  map[string]*app.App     // that commands share, by their environment
	folder  string                  // of the project; "" for the test's own
	agent   io.Writer               // what an agent says to the MCP server that serveMCP has started
	heard   *bufio.Scanner          // what that answers
	forms   map[string]bool         // whether the toolset of an operation has a form of its own
}

func newDoors(t *testing.T, more ...operation.Toolset) *doors {
	d := &doors{localWorld: newLocalWorld(t), token: doorToken, more: more, servers: map[string]http.Handler{},
		shells: map[string]*app.App{}}
	delete(d.env, "CLAUDEOPS_WEBHOOK_URL")
	d.env["CLAUDEOPS_API_TOKENS"] = doorToken
	d.env["CLAUDEOPS_ADDR"] = "127.0.0.1:0"
	d.env["CLAUDEOPS_TOOLSETS"] = strings.Join(app.ToolsetNames(new(app.App).Toolsets()), ",")
	d.env["CLAUDEOPS_ALLOW_WRITE"] = "true"
	d.env["HOME"] = d.TempDir()
	return d
}

// app is a process: its environment is the one of its start, as servers look at the rules again later.
func (d *doors) app(in string, out *bytes.Buffer) *commandLine {
	env := maps.Clone(d.env)
	a := &commandLine{streams: Streams{In: strings.NewReader(in), Out: out, Err: new(bytes.Buffer)},
		lookup: valuesOf(env), more: d.more, folder: d.folder}
	d.Cleanup(func() { _ = a.program().Close() })
	return a
}

// outcome is the answer, whichever protocol was used.
type outcome struct {
	Code  string
	Paths []string // of the violations
	// the failure of a tool whose toolset has a form of its own, without request ids; nothing else is set then
	Form string
}

// formed is the outcome of a tool whose toolset has a form of its own.
func (d *doors) formed(failure any, failed bool) (o outcome) {
	d.Helper()
	if !failed {
		return o
	}
	text := must.Get(json.Marshal(failure))(d)
	o.Form = requestIDs().ReplaceAllString(string(text), "id")
	return o
}

func requestIDs() *regexp.Regexp { return regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`) }

// hasForm reports whether the toolset of an operation has a form of its own.
func (d *doors) hasForm(o operation.Operation) bool {
	if d.forms == nil {
		d.forms = map[string]bool{}
		for _, set := range new(app.App).Toolsets() {
			for _, one := range set.Operations {
				d.forms[one.Name] = set.Form != nil
			}
		}
	}
	return d.forms[o.Name]
}

func outcomeOf(failure map[string]any) (o outcome) {
	o.Code, _ = failure["code"].(string)
	violations, _ := failure["violations"].([]any)
	for _, v := range violations {
		path, _ := v.(map[string]any)["path"].(string)
		o.Paths = append(o.Paths, path)
	}
	slices.Sort(o.Paths)
	return o
}

func (d *doors) parse(text []byte) (answer map[string]any) {
	d.Helper()
	if err := json.Unmarshal(text, &answer); err != nil {
		d.Fatalf("%v in %s", err, text)
	}
	return answer
}

// runMCP runs `claudeops mcp-server` until its input ends.
func (d *doors) runMCP(in io.Reader, out io.Writer) error {
	a := &commandLine{streams: Streams{In: in, Out: out, Err: io.Discard}, lookup: valuesOf(maps.Clone(d.env)),
		more: d.more, folder: d.folder, args: []string{"mcp-server"}}
	defer func() { _ = a.program().Close() }()
	root := a.rootCommand()
	root.SetArgs(a.args)
	return root.ExecuteContext(context.WithoutCancel(d.Context()))
}

// serveMCP starts one MCP server for all requests that follow.
func (d *doors) serveMCP() {
	d.Helper()
	in, agent := io.Pipe()
	out, server := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := d.runMCP(in, server)
		_ = server.Close()
		ended <- err
	}()
	d.agent, d.heard = agent, bufio.NewScanner(out)
	d.heard.Buffer(nil, 4<<20)
	d.Cleanup(func() {
		_ = agent.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		if err := <-ended; err != nil {
			d.Errorf("the MCP server ended: %v", err)
		}
	})
	d.ask(1, "initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}`)
}

// ask sends one request to the MCP server, and waits for its answer.
func (d *doors) ask(id int, method, params string) (result map[string]any) {
	d.Helper()
	if _, err := fmt.Fprintf(d.agent, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method,
		params); err != nil {
		d.Fatal(err)
	}
	for d.heard.Scan() {
		answer := d.parse(d.heard.Bytes())
		if answer["id"] != float64(id) {
			continue // a notice
		}
		if failure, failed := answer["error"].(map[string]any); failed {
			return map[string]any{"isError": true, "protocol": failure["code"]}
		}
		result, _ = answer["result"].(map[string]any)
		return result
	}
	d.Fatalf("the MCP server has ended: %v", d.heard.Err())
	return nil
}

// mcp is the result of one request after the greeting, by a server of its own.
func (d *doors) mcp(method, params string) map[string]any {
	d.Helper()
	result, _ := d.mcpAnswer(false, method, params)
	return result
}

func (d *doors) throughMCP(o operation.Operation, arguments string) outcome {
	d.Helper()
	call := fmt.Sprintf(`{"name":%q,"arguments":%s}`, o.Name, arguments)
	var result map[string]any
	if d.agent == nil {
		result = d.mcp("tools/call", call)
	} else {
		result = d.ask(2, "tools/call", call)
	}
	structured, _ := result["structuredContent"].(map[string]any)
	if d.hasForm(o) {
		return d.formed(structured, result["isError"] == true)
	}
	failure, _ := structured["error"].(map[string]any)
	return outcomeOf(failure)
}

// throughCLI uses the command that is made from the operation, since those written by hand cannot say everything.
func (d *doors) throughCLI(o operation.Operation, arguments string) outcome {
	d.Helper()
	a, out, err := d.runOperation(o, arguments)
	if d.hasForm(o) {
		if bytes.HasPrefix(out.Bytes(), []byte("[")) {
			return outcome{} // a bare list, which no failure is
		}
		return d.formed(d.parse(out.Bytes()), err != nil)
	}
	if err == nil {
		return outcome{}
	}
	a.renderError(err)
	problem := d.parse(out.Bytes())
	problem["message"] = problem["detail"]
	return outcomeOf(problem)
}

// runOperation runs the command that is made from an operation, with what commands before it have opened and made:
// opening the records takes longer than most of them.
func (d *doors) runOperation(o operation.Operation, arguments string) (a *commandLine, out *bytes.Buffer, err error) {
	d.Helper()
	environment := fmt.Sprint(d.env)
	shell := d.shells[environment]
	if shell == nil {
		shell = d.app("", new(bytes.Buffer)).program()
		d.shells[environment] = shell
	}
	out = new(bytes.Buffer)
	a = &commandLine{streams: Streams{In: strings.NewReader(arguments), Out: out, Err: io.Discard}, lookup: d.lookup,
		more: d.more, folder: d.folder, made: shell}
	root := a.bareRoot()
	root.AddCommand(a.operationCommand(operation.Named(operation.List(shell.Toolsets()...), o.Name),
		"operation-under-test"))
	root.SetArgs([]string{"operation-under-test", "--from", "-", "--json"})
	err = root.ExecuteContext(d.Context())
	ledger := shell.Wire(app.Needs{}).Store.Ledger
	if err := ledger.FlushRepeats(d.Context(), true); err != nil { // as the end of a command does
		d.Error(err)
	}
	return a, out, err
}

// server is the one for the environment as it is now.
func (d *doors) server() http.Handler {
	d.Helper()
	environment := fmt.Sprint(d.env) // which is sorted
	if server := d.servers[environment]; server != nil {
		return server
	}
	a := d.app("", new(bytes.Buffer))
	p := a.program().Wire(app.Needs{})
	agents, err := app.NewAgentSessions(p)
	must.Do(d, err)
	server, err := app.NewWebServer(p, app.WebToolsets(a.program()), app.NewFollower(p), agents, app.AgentTokens(p),
		&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, httpx.Own{})
	must.Do(d, err)
	d.servers[environment] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r)
		if err := p.Store.Ledger.FlushRepeats(r.Context(), true); err != nil { // a row for each refusal, however quick
			d.Error(err)
		}
	})
	return d.servers[environment]
}

// rest answers a request over HTTP.
func (d *doors) rest(method, target, body string) (int, map[string]any) {
	d.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8080"+target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+d.token)
	out := httptest.NewRecorder()
	d.server().ServeHTTP(out, r)
	return out.Code, d.parse(out.Body.Bytes())
}

// restRequest says what the arguments say by path and query where a route has no body. Some things cannot be said that
// way: ok is false.
func (d *doors) restRequest(o operation.Operation, arguments string) (target, body string, ok bool) {
	d.Helper()
	target = "/api/v1" + o.Route.Path
	if o.Route.MaxBody > 0 {
		return target, arguments, true
	}
	query := url.Values{}
	given := d.parse([]byte(arguments))
	for _, f := range operation.Fields(o.Input) {
		name := f.JSON
		value, has := given[name]
		delete(given, name)
		_, isText := value.(string)
		part := f.Tag.Get("path")
		switch {
		case !has && part != "", has && f.Type.Kind() == reflect.String && !isText:
			return "", "", false
		case part != "":
			target = strings.Replace(target, "{"+part+"}", url.PathEscape(fmt.Sprint(value)), 1)
		case has && f.Type.Kind() == reflect.Slice:
			list, isList := value.([]any)
			for _, one := range list {
				text, isText := one.(string)
				isList = isList && isText
				query.Add(name, text)
			}
			if !isList {
				return "", "", false
			}
		case has:
			query.Set(name, fmt.Sprint(value))
		}
	}
	for name, value := range given {
		query.Set(name, fmt.Sprint(value))
	}
	return target + "?" + query.Encode(), "", true
}

func (d *doors) throughREST(o operation.Operation, arguments string) (out outcome, ok bool) {
	d.Helper()
	target, body, ok := d.restRequest(o, arguments)
	if !ok {
		return out, false
	}
	status, answer := d.rest(o.Route.Method, target, body)
	if status < 300 {
		return out, true
	}
	out = outcomeOf(answer)
	if want := fault.Code(out.Code).HTTPStatus(); status != want {
		d.Errorf("%s: %s came with the status %d, want %d", o.Name, out.Code, status, want)
	}
	if d.hasForm(o) {
		return d.formed(answer["failure"], true), true
	}
	return out, true
}

// goodRequest is a request for an operation that clients send in every way, made from its type: each required field
// has its example, the first value of its list, its bound, or a letter. One that needs another has a case here.
func goodRequest(o operation.Operation) string {
	switch o.Name {
	case "create_pr":
		return `{"repo_owner":"joe","repo_name":"infra","title":"Check inodes","body":"Why: x",` +
			`"files":[{"path":"checks/inodes.md","action":"create","content":"# Inodes\n"}]}`
	case "rollback":
		return `{"to":"1","yes":true}`
	case "fractary_forge_plugin_info":
		return `{"plugin":"@a/b"}`
	case "fractary_forge_agent_validate", "fractary_forge_tool_validate", "fractary_forge_skill_validate":
		return `{"name":"a"}`
	case "aam_config_set":
		return `{"key":"author.name","value":"a"}`
	case "aam_registry_add":
		return `{"name":"a","url":"."}`
	}
	text, err := json.Marshal(goodObject(o.Input))
	if err != nil {
		panic(err) // strings, numbers and lists of them
	}
	return string(text)
}

// goodObject has a value for each field that a request of this type must have.
func goodObject(request reflect.Type) map[string]any {
	object := map[string]any{}
	for _, f := range operation.Fields(request) {
		switch {
		case f.Tag.Get("required") != "true":
		case f.JSON == "repo_owner":
			object[f.JSON] = "joe"
		case f.JSON == "repo_name":
			object[f.JSON] = "infra"
		default:
			object[f.JSON] = goodValue(f.Type, f.Tag)
		}
	}
	return object
}

func goodValue(of reflect.Type, tag reflect.StructTag) any {
	switch of.Kind() {
	case reflect.Pointer:
		return goodValue(of.Elem(), tag)
	case reflect.Slice:
		return []any{goodValue(of.Elem(), tag)}
	case reflect.Struct:
		return goodObject(of)
	case reflect.Bool:
		return true
	case reflect.Int:
		least, err := strconv.Atoi(tag.Get("minimum"))
		if err != nil {
			return 1
		}
		return least
	}
	listed, _, _ := strings.Cut(tag.Get("enum"), ",")
	for _, text := range []string{tag.Get("example"), listed} {
		if text != "" {
			return text
		}
	}
	return "a"
}

// brokenRequests are those that break one limit of the type, or one rule of decoding, by what they break.
func brokenRequests(t *testing.T, o operation.Operation) map[string]string {
	t.Helper()
	broken := map[string]string{}
	with := func(what string, change func(map[string]any)) {
		var request map[string]any
		if err := json.Unmarshal([]byte(goodRequest(o)), &request); err != nil {
			t.Fatalf("the request for %s: %v", o.Name, err)
		}
		change(request)
		text := must.Get(json.Marshal(request))(t)
		broken[what] = string(text)
	}
	with("an unknown name", func(r map[string]any) { r["nonsense"] = "x" })
	for _, f := range operation.Fields(o.Input) {
		name := f.JSON
		set := func(what string, value any) { with(name+": "+what, func(r map[string]any) { r[name] = value }) }
		set("a wrong type", map[string]any{"a": 1})
		isText := f.Type.Kind() == reflect.String || f.Type == reflect.TypeFor[*string]()
		set("the wrong scalar", map[bool]any{true: 7, false: "seven"}[isText])
		if f.Tag.Get("required") == "true" {
			with(name+": missing", func(r map[string]any) { delete(r, name) })
		}
		number := func(tag string) (int, bool) {
			n, err := strconv.Atoi(f.Tag.Get(tag))
			return n, err == nil
		}
		if n, has := number("maxLength"); has {
			set("too long", strings.Repeat("x", n+1))
		}
		if n, has := number("maxBytes"); has {
			set("too many bytes", strings.Repeat("\u00fc", n/2+1))
		}
		if n, has := number("minLength"); has {
			set("too short", strings.Repeat("x", n-1))
		}
		if n, has := number("minimum"); has {
			set("too small", n-1)
		}
		if n, has := number("maximum"); has {
			set("too large", n+1)
		}
		if n, has := number("maxItems"); has {
			set("too many", make([]struct{}, n+1))
		}
		if n, has := number("minItems"); has {
			set("too few", make([]struct{}, n-1))
		}
		if _, has := f.Tag.Lookup("enum"); has {
			set("an unknown value", "nonsense")
		}
	}
	return broken
}

func TestEveryLimitIsTheSameThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	d := newDoors(t, wordsToolset())
	d.env["CLAUDEOPS_TIER"] = "3"
	d.serveMCP()
	for _, o := range operation.List(d.app("", new(bytes.Buffer)).program().Toolsets()...) {
		if o.Tool.Title == "" || o.Command == "" || o.Route.Method == "" {
			continue
		}
		good := d.throughMCP(o, goodRequest(o))
		if good.Code == string(fault.InvalidArgument) {
			t.Errorf("%s: the good request is refused: %v", o.Name, good)
		}
		for what, arguments := range brokenRequests(t, o) {
			want := d.throughAll(o, arguments)
			asWanted := want.Code == string(fault.InvalidArgument) && len(want.Paths) > 0
			if d.hasForm(o) {
				asWanted = want.Form != "" && want.Form != good.Form
			}
			if !asWanted {
				t.Errorf("%s, %s: MCP answers %v to %.200s", o.Name, what, want, arguments)
			}
		}
	}
}

// A new operation that only reads: one type pair and one value.

type countRequest struct {
	Text  string `json:"text" required:"true" minLength:"1" maxLength:"20" doc:"What to count" example:"one two"`
	Lines bool   `json:"lines,omitempty" doc:"Count lines"`
	Most  int    `json:"most,omitempty" minimum:"1" maximum:"9" doc:"Count no further"`
	Sort  string `json:"sort,omitempty" enum:"asc,desc"`
}

type countAnswer struct {
	Count int `json:"count"`
}

func wordsToolset() operation.Toolset {
	return operation.Toolset{
		Name: "words", Instructions: "Count words.", Schemas: fstest.MapFS{
			"schema/count_words.input.json":  {Data: []byte(`{"type":"object"}`)},
			"schema/count_words.output.json": {Data: []byte(`{"type":"object"}`)},
		},
		Operations: []operation.Operation{operationtest.Plain(operation.Operation{
			Name: "count_words", Summary: "Count the words of a text", Effect: operation.Read,
			Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read},
			Tool:  operation.Tool{Title: "Count words", Description: "Count the words of a text."},
			Route: operation.Route{Method: "GET", Path: "/words", ID: "countWords"}, Command: "words count",
		}, false, func(_ context.Context, _ operation.Call, in countRequest) (countAnswer, error) {
			return countAnswer{len(strings.Fields(in.Text))}, nil
		})},
	}
}

func TestANewOperationThatReadsIsAtOnceOnEveryWayInAndInTheDocs(t *testing.T) {
	t.Parallel()
	d := newDoors(t, wordsToolset())
	tools, _ := json.Marshal(d.mcp("tools/list", "{}")["tools"])
	if !bytes.Contains(tools, []byte(`"count_words"`)) || !bytes.Contains(tools, []byte(`"create_pr"`)) {
		t.Errorf("tools/list: %s", tools)
	}
	called := d.mcp("tools/call", `{"name":"count_words","arguments":{"text":"one two"}}`)
	if diff := cmp.Diff(map[string]any{"count": 2.0}, called["structuredContent"]); diff != "" {
		t.Errorf("MCP: %s", diff)
	}
	if status, answer := d.rest("GET", "/api/v1/words?text=one+two", ""); status != http.StatusOK ||
		answer["count"] != 2.0 {
		t.Errorf("REST: %d %v", status, answer)
	}
	var out bytes.Buffer
	root := d.app("", &out).rootCommand()
	root.SetArgs([]string{"words", "count", "--text", "one two"})
	if err := root.ExecuteContext(t.Context()); err != nil || d.parse(out.Bytes())["count"] != 2.0 {
		t.Errorf("command line: %v, %s", err, out.String())
	}
	_, document := d.rest("GET", "/openapi.json", "")
	described, _ := json.Marshal(document["paths"].(map[string]any)["/api/v1/words"])
	for _, part := range []string{`"operationId":"countWords"`, `"maxLength":20`, `"enum":["asc","desc"]`, `"maximum":9`,
		`"examples":["one two"]`} {
		if !bytes.Contains(described, []byte(part)) {
			t.Errorf("OpenAPI lacks %s: %s", part, described)
		}
	}
	page := string(operationtest.Docs(d.app("", new(bytes.Buffer)).program().Toolsets()))
	for _, part := range []string{"`GET /api/v1/words`", "`claudeops words count`",
		"| `text` | string, required | What to count"} {
		if !strings.Contains(page, part) {
			t.Errorf("the docs lack %s", part)
		}
	}
}

// limitsIn collects the limits that a schema states, by where they stand. OpenAPI's schemas refer to others.
func limitsIn(at string, schema map[string]any, refer func(string) map[string]any, into map[string]any) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = refer(ref)
	}
	for _, name := range []string{
		"minLength", "maxLength", "pattern", "enum", "minimum", "maximum", "minItems", "maxItems", "required", "default",
		"examples",
	} {
		value := schema[name]
		if list, ok := value.([]any); ok && name == "required" {
			var names []string
			for _, n := range list {
				names = append(names, n.(string))
			}
			slices.Sort(names)
			value = names
		}
		if value != nil {
			into[at+" "+name] = value
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		limitsIn(at+"[]", items, refer, into)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		limitsIn(at+"."+name, property.(map[string]any), refer, into)
	}
}

func TestTheLimitsOfOpenAPIAreThoseOfTheTools(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	_, document := d.rest("GET", "/openapi.json", "")
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any)
	refer := func(ref string) map[string]any {
		return schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
	}
	for _, o := range operation.List(new(app.App).Toolsets()...) {
		if o.Tool.Title == "" || o.Route.Method == "" {
			continue
		}
		text := schemaOf(t, o)
		tool, rest := map[string]any{}, map[string]any{}
		limitsIn("", d.parse(text), nil, tool)
		route := document["paths"].(map[string]any)["/api/v1"+
			o.Route.Path].(map[string]any)[strings.ToLower(o.Route.Method)].(map[string]any)
		if body, has := route["requestBody"].(map[string]any); has {
			limitsIn("", body["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any), refer,
				rest)
		} else {
			limitsIn("", asObject(o, route["parameters"].([]any)), refer, rest)
		}
		if diff := cmp.Diff(tool, rest); diff != "" {
			t.Errorf("%s (-tool +OpenAPI):\n%s", o.Name, diff)
		}
	}
}

// schemaOf is the input schema of a tool.
func schemaOf(t *testing.T, o operation.Operation) []byte {
	t.Helper()
	for _, set := range new(app.App).Toolsets() {
		for _, one := range set.Operations {
			if one.Name != o.Name {
				continue
			}
			text, err := set.Schema(o, "input")
			must.Do(t, err)
			return text
		}
	}
	t.Fatalf("no toolset has %s", o.Name)
	return nil
}

// asObject converts the parameters of a path and a query to the form of a tool's schema.
func asObject(o operation.Operation, parameters []any) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, p := range parameters {
		p := p.(map[string]any)
		name := p["name"].(string)
		for _, f := range operation.Fields(o.Input) {
			if f.Tag.Get("path") == name {
				name = f.JSON
			}
		}
		properties[name] = p["schema"]
		if p["required"] == true {
			required = append(required, name)
		}
	}
	return map[string]any{"properties": properties, "required": required}
}
