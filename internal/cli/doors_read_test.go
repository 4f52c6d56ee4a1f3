package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// readers are doors with one pull request of ours, #1, which updates checks/disk.md and adds checks/inodes.md.
func newReaders(t *testing.T) *doors {
	t.Helper()
	d := newDoors(t)
	d.env["CLAUDEOPS_TIER"] = "2"
	created := d.throughCLI(operationOf(t, "create_pr"), goodRequest(operationOf(t, "create_pr")))
	if created.Code != "" {
		t.Fatalf("no pull request: %+v", created)
	}
	d.env["CLAUDEOPS_TIER"] = "1"
	return d
}

func operationOf(t *testing.T, name string) operation.Operation {
	t.Helper()
	for _, o := range operation.List(new(app.App).Toolsets()...) {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("no operation %s", name)
	return operation.Operation{}
}

func (d *doors) command(args ...string) (out, errors string, failure outcome) {
	d.Helper()
	var b, e bytes.Buffer
	a := d.app("", &b)
	a.streams.Err = &e
	root := a.rootCommand()
	root.SetArgs(args)
	if err := root.ExecuteContext(d.Context()); err != nil {
		b.Reset()
		a.json = true
		a.renderError(err)
		problem := d.parse(b.Bytes())
		return "", e.String(), outcomeOf(problem)
	}
	return b.String(), e.String(), outcome{}
}

func TestAFileIsReadOverRESTAndAtTheCommandLine(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	const files = "/api/v1/repos/joe/infra/files/"
	status, answer := d.rest("GET", files+"checks/inodes.md?pull=1", "")
	sha := gitprovider.BlobID([]byte("# Inodes\n"), strings.Repeat("0", 40))
	if status != http.StatusOK || answer["text"] != "# Inodes\n" || answer["base_sha"] != sha || answer["pull"] != 1.0 ||
		answer["untrusted"] == "" {
		t.Fatalf("%d %v", status, answer)
	}
	if status, encoded := d.rest("GET", files+"checks%2Finodes.md?pull=1", ""); status != http.StatusOK ||
		encoded["base_sha"] != sha {
		t.Errorf("with an encoded slash: %d %v", status, encoded)
	}
	out, beside, failed := d.command("pr", "file", "joe/infra", "checks/inodes.md", "--pull", "1")
	if out != "# Inodes\n" || !strings.Contains(beside, "base_sha "+sha+"\n") || failed.Code != "" {
		t.Errorf("%q, %q, %v", out, beside, failed)
	}
	out, _, failed = d.command("pr", "file", "joe/infra", "checks/inodes.md", "--pull", "1", "--json")
	if got := d.parse([]byte(out)); failed.Code != "" || got["base_sha"] != sha {
		t.Errorf("%q, %v", out, failed)
	}
	const diff = "--- /dev/null\n+++ b/checks/inodes.md\n@@ -0,0 +1 @@\n+# Inodes\n"
	status, answer = d.rest("GET", "/api/v1/prs/1/diff?repo_owner=joe&repo_name=infra", "")
	if status != http.StatusOK || answer["diff"] != diff {
		t.Errorf("%d %v", status, answer)
	}
	if out, _, failed := d.command("pr", "diff", "1", "--repo", "joe/infra"); out != diff || failed.Code != "" {
		t.Errorf("%q, %v", out, failed)
	}
}

func TestNoSpellingOfAnAddressLeadsToAnotherFile(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	for _, path := range []string{
		"checks/%2e%2e/README.md", "checks%2f..%2fREADME.md", "%2e%2e/%2e%2e/infra/files/README.md", "%2e/checks/disk.md",
		"checks%252fdisk.md",
		"checks//disk.md", "/checks/disk.md", "%2Fchecks/disk.md", "checks%5cdisk.md", "checks/disk.md%00", "checks/disk.md/",
		".git/config", "%2egit/config",
		"checks/disk.md%20", "checks/../README.md", "checks/./disk.md", "", "%E2%80%AEchecks/disk.md",
	} {
		for _, query := range []string{"", "?pull=1"} {
			status, answer := d.rest("GET", "/api/v1/repos/joe/infra/files/"+path+query, "")
			if status < 300 || answer["text"] != nil {
				t.Errorf("%q%s is answered: %d %v", path, query, status, answer)
			}
		}
	}
	for target, code := range map[string]string{
		"/api/v1/repos/joe/infra/files/README.md":                    "scope_denied",
		"/api/v1/repos/joe/infra/files/checks%2f..%2fREADME.md":      "not_found", // no address at all
		"/api/v1/repos/joe/infra/files/checks/none.md":               "not_found",
		"/api/v1/repos/joe/none/files/checks/disk.md":                "not_found",
		"/api/v1/repos/joe%2finfra/x/files/checks/disk.md":           "invalid_argument",
		"/api/v1/repos/joe/infra/files/checks/disk.md?pull=2":        "not_found",
		"/api/v1/repos/joe/infra/files/checks/disk.md?pull=0":        "invalid_argument",
		"/api/v1/repos/joe/infra/files/checks/disk.md?pull=1&pull=1": "invalid_argument",
		"/api/v1/repos/joe/infra/files/checks/disk.md?path=x":        "invalid_argument",
		"/api/v1/repos/joe/infra/files/checks/disk.md?repo_owner=x":  "invalid_argument",
		"/api/v1/prs/1/diff?repo_owner=joe&repo_name=infra&x=1":      "invalid_argument",
		"/api/v1/prs/2/diff?repo_owner=joe&repo_name=infra":          "not_found",
		"/api/v1/prs/1/diff?repo_owner=joe":                          "invalid_argument",
	} {
		status, answer := d.rest("GET", target, "")
		if answer["code"] != code || status < 400 {
			t.Errorf("%s: %d %v, want %s", target, status, answer, code)
		}
	}
}

func TestWhatIsReadIsTheSameThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	for _, c := range []struct{ path, query string }{
		{"checks/disk.md", ""}, {"checks/inodes.md", "?pull=1"}, {"README.md", ""}, {"README.md", "?pull=1"},
		{"checks/none.md", ""},
		{"checks/disk.md", "?pull=9"}, {".env", ""}, {"a b", ""},
	} {
		args := []string{"pr", "file", "joe/infra", c.path}
		request := fmt.Sprintf(`{"repo_owner":"joe","repo_name":"infra","path":%q`, c.path)
		if _, number, has := strings.Cut(c.query, "="); has {
			args, request = append(args, "--pull", number), request+`,"pull":`+number
		}
		_, answer := d.rest("GET", "/api/v1/repos/joe/infra/files/"+url.PathEscape(c.path)+c.query, "")
		want := outcomeOf(answer)
		_, _, byHand := d.command(args...)
		made := d.throughCLI(operationOf(t, "read_file"), request+"}")
		for door, got := range map[string]outcome{"pr file": byHand, "the command that is made": made} {
			if got.Code != want.Code || strings.Join(got.Paths, " ") != strings.Join(want.Paths, " ") {
				t.Errorf("%s%s: REST %+v, %s %+v", c.path, c.query, want, door, got)
			}
		}
	}
}

func TestFilesAreListedAlikeThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	d.env["CLAUDEOPS_TOOLSETS"] = "pr"
	pathsOf := func(v any) string {
		var out []string
		list, _ := v.([]any)
		for _, f := range list {
			entry, _ := f.(map[string]any)
			out = append(out, fmt.Sprint(entry["path"], " ", entry["base_sha"], " ", entry["bytes"]))
		}
		return strings.Join(out, ", ")
	}
	d.policy("scope:\n  allow: [README.md, 'checks/*.md']\n")
	for glob, has := range map[string]bool{"": true, "*.md": true, "none/*": false, "[": false} {
		status, answer := d.rest("GET", "/api/v1/repos/joe/infra/files?glob="+url.QueryEscape(glob), "")
		want := pathsOf(answer["files"])
		if (status == 200) != (glob != "[") || strings.HasPrefix(want, "README.md ") != has {
			t.Errorf("REST %q: %d, %q", glob, status, want)
		}
		out, _, byHand := d.command("pr", "files", "joe/infra", glob, "--json")
		if status != 200 {
			if byHand.Code != outcomeOf(answer).Code {
				t.Errorf("pr files %q: %+v", glob, byHand)
			}
		} else if got := pathsOf(d.parse([]byte(out))["files"]); got != want {
			t.Errorf("pr files %q: %q, want %q", glob, got, want)
		}
		for _, written := range []string{url.QueryEscape(glob), glob} { // models write it plainly
			contents, failure := d.readResource(true, "claudeops://joe/infra/files?glob="+written)
			if status != 200 || failure != nil {
				if status == 200 || failure == nil {
					t.Errorf("the resource %q: %v, %v", written, contents, failure)
				}
				continue
			}
			var list any
			text, _ := contents[1]["text"].(string)
			if err := json.Unmarshal([]byte(text), &list); err != nil || pathsOf(list) != want ||
				contents[1]["mimeType"] != "application/json" {
				t.Errorf("the resource %q: %v, want %q", written, contents, want)
			}
		}
	}
}

func TestReadingNeedsTheScopeToRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"read_file", "read_pr_diff", "list_files"} {
		o := operationOf(t, name)
		if o.Needs.Scope != access.Read || o.Effect != operation.Read || o.Needs.Tier != gitprovider.TierObserve ||
			o.Tool.Title != "" {
			t.Errorf("%+v", o)
		}
	}
	d := newReaders(t)
	d.env["CLAUDEOPS_POLICY"] = "/nonexistent/policy.yaml"
	if status, answer := d.rest("GET", "/api/v1/repos/joe/infra/files/checks/disk.md",
		""); answer["code"] != "misconfigured" {
		t.Errorf("without rules: %d %v", status, answer)
	}
	if status, answer := d.rest("GET", "/api/v1/prs/1/diff?repo_owner=joe&repo_name=infra",
		""); answer["code"] != "misconfigured" {
		t.Errorf("without rules: %d %v", status, answer)
	}
	_, answer := d.rest("GET", "/api/v1/prs/1?repo_owner=joe&repo_name=infra&include=files&include=diff", "")
	if included, _ := answer["included"].(map[string]any); included["files"] != nil || included["diff"] != nil {
		t.Errorf("without rules: %v", answer)
	}
}

func TestWhatAStatusIncludesIsAskedForAlikeThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	for include, code := range map[string]string{`["files","diff"]`: "", `["diff"]`: "", `["text"]`: "invalid_argument",
		`["files","diff","files"]`: "invalid_argument"} {
		got := d.throughAll(operationOf(t, "get_pr_status"),
			`{"repo_owner":"joe","repo_name":"infra","pr_number":1,"include":`+include+`}`)
		if got.Code != code {
			t.Errorf("%s: %+v", include, got)
		}
	}
}

// throughAll sends a request through every way in, and checks that all answer alike.
func (d *doors) throughAll(o operation.Operation, arguments string) outcome {
	d.Helper()
	want := d.throughMCP(o, arguments)
	if diff := cmp.Diff(want, d.throughCLI(o, arguments)); diff != "" {
		d.Errorf("%.300s (-MCP +command line):\n%s", arguments, diff)
	}
	if got, ok := d.throughREST(o, arguments); ok && !cmp.Equal(want, got) {
		d.Errorf("%.300s (-MCP +REST):\n%s", arguments, cmp.Diff(want, got))
	}
	return want
}

// A revision of which the gate says no, and answers to a review that may not be posted, are refused with the same words
// of the contract through every way in. Replies to comments that wait for none are reported first.
func TestARefusedRevisionIsAnsweredAlikeThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	create := operationOf(t, prflow.ToolCreatePR)
	good := goodRequest(create)
	changed := strings.NewReplacer(`"create"`, `"update"`, `# Inodes\n`, `# Inodes\n\ndf -i\n`).Replace(good)
	revised := func(by string) string { return strings.Replace(changed, `"title"`, `"revises":`+by+`,"title"`, 1) }
	repo := `{"repo_owner":"joe","repo_name":"infra",`
	for rules, requests := range map[string]map[string]string{
		"revise: reviewed\n": {
			revised("1"): "duplicate_pr", revised("7"): "not_found", revised("-1"): "invalid_argument",
			revised(`"one"`): "invalid_argument", revised("1.5"): "invalid_argument",
		},
		"": {
			strings.Replace(good, `"title"`, `"reply":"So.","title"`, 1):                            "invalid_argument",
			repo + `"revises":1,"reply":"So."}`:                                                     "duplicate_pr",
			repo + `"revises":1,"files":[],"reply":"So.","replies":[{"comment":"9","text":"So."}]}`: "duplicate_pr",
			repo + `"revises":1}`:                                     "invalid_argument",
			repo + `"revises":7,"reply":"So."}`:                       "not_found",
			repo + `"revises":1,"reply":"key AKIAQ4XK7TZP2LMN5RSW "}`: "duplicate_pr",
		},
	} {
		d := newReaders(t)
		d.env["CLAUDEOPS_TIER"] = "2"
		d.policy(rules)
		d.serveMCP()
		for arguments, code := range requests {
			if got := d.throughAll(create, arguments); got.Code != code {
				t.Errorf("%s%s: %v, want %s", rules, arguments, got, code)
			}
		}
	}
}

// foundToolset is a toolset with one tool, which is found while the program runs.
func foundToolset(scope access.Scope, rejected *[]string) operation.Toolset {
	object := json.RawMessage(`{"type":"object"}`)
	return operation.Toolset{
		Name: "found", Instructions: "Find.",
		Found: func(context.Context) []operation.Operation {
			return []operation.Operation{operationtest.Plain(operation.Operation{
				Name: "found_one", Effect: operation.Exec, Needs: operation.Needs{Scope: scope},
				Tool:    operation.Tool{Title: "One", Description: "One."},
				Schemas: operation.Schemas{Input: object, Output: object}, Route: operation.Route{Method: "POST", MaxBody: 1 << 10},
			}, true, func(_ context.Context, call operation.Call, _ map[string]any) (map[string]any, error) {
				if string(call.Arguments) == `{"fail":true}` {
					return nil, fault.New(fault.Conflict, "it failed")
				}
				return map[string]any{"door": string(call.Caller.Door)}, nil
			})}
		},
		Reject: func(_ context.Context, _ operation.Call, name string, _ *fault.Error) {
			*rejected = append(*rejected, name)
		},
		Form: &operation.Form{
			FailureType: reflect.TypeFor[countAnswer](),
			Failure:     func(o operation.Operation, _ error, _ string) any { return map[string]any{"of": o.Name} },
		},
	}
}

func TestAToolThatIsFoundIsCalledOverREST(t *testing.T) {
	t.Parallel()
	var rejected []string
	d := newDoors(t, foundToolset(access.Operate, &rejected))
	if status, answer := d.rest("POST", "/api/v1/tools/found_one", `{}`); status != http.StatusOK ||
		answer["door"] != string(record.DoorREST) {
		t.Errorf("%d %v", status, answer)
	}
	status, answer := d.rest("POST", "/api/v1/tools/found_one", `{"fail":true}`)
	if failure, _ := answer["failure"].(map[string]any); status != http.StatusConflict || failure["of"] != "found_one" {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer := d.rest("POST", "/api/v1/tools/found_two", `{}`); status != http.StatusNotFound ||
		answer["code"] != "not_found" {
		t.Errorf("%d %v", status, answer)
	}
	if _, document := d.rest("GET", "/openapi.json",
		""); document["paths"].(map[string]any)["/api/v1/tools/{name}"] == nil {
		t.Error("OpenAPI does not know it")
	}
	d = newDoors(t, foundToolset("another scope", &rejected))
	if status, answer := d.rest("POST", "/api/v1/tools/found_one", `{}`); status != http.StatusForbidden ||
		len(rejected) != 1 || rejected[0] != "found_one" {
		t.Errorf("%d %v, recorded %v", status, answer, rejected)
	}
	called := d.mcp("tools/call", `{"name":"found_one","arguments":{}}`)
	if structured, _ := called["structuredContent"].(map[string]any); structured["door"] != "mcp" {
		t.Errorf("MCP: %v", called)
	}
}

// A script's arguments are not a struct: REST must not look for fields in them.
func TestAScriptIsRunOverREST(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	project := t.TempDir()
	d.folder, d.env["CLAUDEOPS_BOUNDARY"], d.env["CLAUDEOPS_TIER"], d.env["PATH"] = project, "none", "3", os.Getenv("PATH")
	operationtest.WriteExecutables(t, project,
		map[string]string{"scripts/Agent/say-hello.sh": "#!/bin/sh\n# @noparams\necho hello\n"})
	if status, answer := d.rest("POST", "/api/v1/tools/say_hello", `{}`); status != http.StatusOK ||
		answer["stdout"] != "hello\n" {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer := d.rest("POST", "/api/v1/tools/say_hello", `[]`); status != http.StatusBadRequest ||
		answer["code"] != "invalid_argument" {
		t.Errorf("no object: %d %v", status, answer)
	}
}
