package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// effect is the effect of a request, whichever protocol was used.
type effect struct {
	Code       string
	Message    string
	Retryable  bool
	Violations any
	Existing   any
	Success    map[string]any
	Calls      []string
	Writes     int
	Audit      []string
}

func (w *world) effect(success, failure map[string]any) effect {
	e := effect{Success: success, Calls: w.fake.Script.Calls(), Writes: w.fake.Script.Writes()}
	if failure != nil {
		e.Code, _ = failure["code"].(string)
		e.Message, _ = failure["message"].(string)
		if detail, ok := failure["detail"].(string); ok {
			e.Message = detail
		}
		e.Retryable, _ = failure["retryable"].(bool)
		e.Violations, e.Existing = failure["violations"], failure["existing_pr"]
	}
	for _, a := range w.attempts() {
		e.Audit = append(e.Audit, fmt.Sprint(a.Action, a.Tier, a.Outcome, a.Code, a.Owner, a.Repo, a.Title, a.Paths,
			a.Message, a.PRNumber, len(a.Verdicts)))
	}
	return e
}

// throughMCP sends a tool call as an agent does.
func (w *world) throughMCP(tool, arguments string) effect {
	w.Helper()
	server, err := mcpserver.New([]operation.Toolset{prflow.Toolset(func() *prflow.Service { return prflow.New(w.flow) })},
		mcpserver.Options{
			Version: "test", Log: slog.New(slog.DiscardHandler), NewID: w.flow.NewID,
		})
	must.Do(w, err)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"tester","version":"9"}}}`
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool,
		arguments)
	var out bytes.Buffer
	in := strings.NewReader(hello + "\n" + call)
	must.Do(w, server.Serve(context.Background(), mcpserver.Client{}, in, &out))
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var answer struct {
		Result struct {
			StructuredContent map[string]any `json:"structuredContent"`
		} `json:"result"`
	}
	must.Do(w, json.Unmarshal(lines[len(lines)-1], &answer))
	content := answer.Result.StructuredContent
	if failure, ok := content["error"].(map[string]any); ok {
		return w.effect(nil, failure)
	}
	return w.effect(content, nil)
}

func (w *world) throughREST(method, target, body string) effect {
	w.Helper()
	a := w.do(method, target, body)
	if a.Header.Get("Content-Type") == "application/problem+json" {
		if want := fault.Code(a.code()).HTTPStatus(); a.StatusCode != want {
			w.Errorf("%s came with the status %d, want %d", a.code(), a.StatusCode, want)
		}
		return w.effect(nil, a.json)
	}
	return w.effect(a.json, nil)
}

func files(list ...map[string]any) map[string]any { return map[string]any{"files": list} }

func file(path, action, content string) map[string]any {
	return map[string]any{"path": path, "action": action, "content": content}
}

// TestTheSameRequestThroughMCPAndRESTHasTheSameEffect runs one table through both doors, each on a world of its own.
// The refusals stand for all: prflow's tests have the gates.
func TestTheSameRequestThroughMCPAndRESTHasTheSameEffect(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*world)
		body   string
		before string // a proposal that is opened first
		code   fault.Code
	}{
		"a good one":     {body: request(nil)},
		"a dry run":      {change: func(w *world) { w.flow.Authority.DryRun = true }, body: request(nil)},
		"the same again": {before: request(nil), body: request(nil)},
		"other content on the same path": {before: request(nil),
			body: request(files(file("checks/inodes.md", "create", "#\n"))), code: fault.DuplicatePR},
		"a name twice": {body: strings.Replace(request(nil), `{`, `{"title":"x",`, 1),
			code: fault.InvalidArgument},
		"a secret": {body: request(map[string]any{"body": "see " + ownToken}),
			code: fault.ContentDenied},
		"read-only": {change: func(w *world) { w.flow.Authority.ReadOnly = "read-only" },
			body: request(nil), code: fault.ReadOnly},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run := func(do func(*world) effect) effect {
				w := newWorld(t, c.change)
				if c.before != "" {
					w.want(w.do("POST", "/api/v1/prs", c.before), 201, "")
				}
				w.fake.Script.ForgetCalls()
				return do(w)
			}
			mcp := run(func(w *world) effect { return w.throughMCP("create_pr", c.body) })
			rest := run(func(w *world) effect { return w.throughREST("POST", "/api/v1/prs", c.body) })
			if mcp.Code != string(c.code) {
				t.Errorf("MCP: code %q, want %q", mcp.Code, c.code)
			}
			if c.code != "" && (mcp.Writes != 0 || rest.Writes != 0) {
				t.Errorf("a refusal wrote: %d, %d", mcp.Writes, rest.Writes)
			}
			if diff := cmp.Diff(mcp, rest); diff != "" {
				t.Errorf("the doors differ (-MCP +REST):\n%s", diff)
			}
		})
	}
}

func TestReadingThroughMCPAndRESTIsTheSame(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ tool, arguments, target string }{
		"list": {"list_prs", `{"repo_owner":"joe","repo_name":"infra"}`,
			"/prs?repo_owner=joe&repo_name=infra"},
		"list, no owner": {"list_prs", `{"repo_name":"infra"}`, "/prs?repo_name=infra"},
		"list, unknown name": {"list_prs", `{"repo_name":"infra","repo_owner":"joe","x":"1"}`,
			"/prs?repo_name=infra&repo_owner=joe&x=1"},
		"list, a name twice": {"list_prs", `{"repo_name":"infra","repo_owner":"joe","repo_owner":"ann"}`,
			"/prs?repo_name=infra&repo_owner=joe&repo_owner=ann"},
		"list, unknown repo": {"list_prs", `{"repo_name":"x","repo_owner":"joe"}`, "/prs?repo_name=x&repo_owner=joe"},
		"status": {"get_pr_status", `{"pr_number":1,"repo_name":"infra","repo_owner":"joe"}`,
			"/prs/1?repo_name=infra&repo_owner=joe"},
		"status, unknown": {"get_pr_status", `{"pr_number":99,"repo_name":"infra","repo_owner":"joe"}`,
			"/prs/99?repo_name=infra&repo_owner=joe"},
		"status, zero": {"get_pr_status", `{"pr_number":0,"repo_name":"infra","repo_owner":"joe"}`,
			"/prs/0?repo_name=infra&repo_owner=joe"},
		"status, no number": {"get_pr_status", `{"pr_number":"x","repo_name":"infra","repo_owner":"joe"}`,
			"/prs/x?repo_name=infra&repo_owner=joe"},
		"status, number twice": {"get_pr_status", `{"pr_number":1,"pr_number":"2","repo_name":"infra","repo_owner":"joe"}`,
			"/prs/1?pr_number=2&repo_name=infra&repo_owner=joe"},
		"status, with clone_url": {"get_pr_status",
			`{"pr_number":1,"clone_url":"https://git.example.org/joe/infra.git","repo_name":"infra","repo_owner":"joe"}`,
			"/prs/1?clone_url=https%3A%2F%2Fgit.example.org%2Fjoe%2Finfra.git&repo_name=infra&repo_owner=joe"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
			w.fake.Script.ForgetCalls()
			mcp := w.throughMCP(c.tool, c.arguments)
			w.fake.Script.ForgetCalls()
			rest := w.throughREST("GET", "/api/v1"+c.target, "")
			if diff := cmp.Diff(mcp, rest); diff != "" {
				t.Errorf("the doors differ (-MCP +REST):\n%s", diff)
			}
		})
	}
}
