package operation_test

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

type question struct {
	Name string `json:"name" required:"true" maxLength:"3"`
}

type reply struct {
	Greeting string `json:"greeting"`
}

func greet() operation.Operation {
	return operationtest.Plain(operation.Operation{Name: "greet", Effect: operation.Read}, false,
		func(_ context.Context, _ operation.Call, q question) (reply, error) {
			return reply{"hello " + q.Name}, nil
		})
}

func TestArgumentsAreDecodedStrictlyAndWithinTheLimits(t *testing.T) {
	o := greet()
	answer, err := o.Handle(t.Context(), operation.Call{Arguments: []byte(`{"name":"ann"}`)})
	if err != nil || answer != (reply{"hello ann"}) {
		t.Errorf("answer %v, %v", answer, err)
	}
	for arguments, count := range map[string]int{
		``: 1, `{}`: 1, `{"name":"anna"}`: 1, `{"name":7,"x":1}`: 2, `{"name":"a","name":"b"}`: 1, `[]`: 1, `{"name":`: 1,
	} {
		_, err := o.Handle(t.Context(), operation.Call{Arguments: []byte(arguments)})
		if e := fault.From(err); err == nil || e.Code != fault.InvalidArgument || len(e.Violations) != count {
			t.Errorf("%s: %v with %d violations, want %d", arguments, err, len(e.Violations), count)
		}
	}
	if o.Input.Name() != "question" || o.Output.Name() != "reply" {
		t.Errorf("types %v, %v", o.Input, o.Output)
	}
}

func TestASchemaIsReadWithoutWhiteSpace(t *testing.T) {
	set := operation.Toolset{Name: "t", Operations: []operation.Operation{greet()}, Schemas: fstest.MapFS{
		"schema/greet.input.json":  {Data: []byte("{ \"type\": \"object\" }\n")},
		"schema/greet.output.json": {Data: []byte("{")},
	}}
	if text, err := set.Schema(set.Operations[0], "input"); err != nil || string(text) != `{"type":"object"}` {
		t.Errorf("schema %s, %v", text, err)
	}
	if _, err := set.Schema(set.Operations[0], "output"); err == nil {
		t.Error("a malformed schema is read")
	}
	if _, err := (operation.Toolset{Schemas: fstest.MapFS{}}).Schema(set.Operations[0], "input"); err == nil {
		t.Error("a schema that is missing is read")
	}
}
