package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

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
