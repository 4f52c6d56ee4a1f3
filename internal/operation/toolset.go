package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Toolset is a list of operations that an operator enables by one name.
type Toolset struct {
	Name         string // as CLAUDEOPS_TOOLSETS has it
	Instructions string // for a model that has not loaded a tool yet
	// Situation returns instructions and descriptions that replace the fixed ones where they depend on the configuration;
	// nil: they do not. It is called when an MCP server starts, must answer at once, and sends no requests.
	Situation func() Situation
	// Schemas has for each tool the files schema/NAME.input.json and schema/NAME.output.json. `make golden` writes them,
	// so that no program has to make them when it starts.
	Schemas    fs.FS
	Operations []Operation
	// Found lists operations that are found while the program runs, such as scripts in a folder; nil for none. It is asked
	// for each tools/list and each call, so it must answer at once. Each has Schemas of its own. One that is no longer
	// found can still be called by clients that know it: its answer then says why it is gone.
	Found func(ctx context.Context) []Operation
	// Reject records a request for an operation that does more than read, and that never came to it: its caller may not,
	// or it could not be read. name is "" if too little of it could be read to know. A toolset that only reads has none.
	Reject func(ctx context.Context, call Call, name string, why *fault.Error)
	// Listed says which tools are shown to MCP clients; nil: all of them, and in a read-only server those that only read.
	// A call of one that is not shown comes to its operation all the same.
	Listed    func(o Operation) bool
	Resources *Resources // nil: it has none
	Prompts   []Prompt
	Form      *Form // nil: the program's own, as docs/reference/codes.md has it
}

// Situation holds the texts for a model under a configuration.
type Situation struct {
	Instructions string
	Descriptions map[string]string // by the name of the tool; those that are not there stay
}

// Told returns the situation of a toolset, and without one what it always says.
func (t Toolset) Told() Situation {
	if t.Situation == nil {
		return Situation{Instructions: t.Instructions}
	}
	return t.Situation()
}

// Form defines the form of a toolset's answers and failures.
type Form struct {
	// Failure is the object of an error. requestID is "" if neither log nor audit has the call.
	Failure func(o Operation, err error, requestID string) any
	// FailureType is the struct type of what Failure returns. A tool's output schema admits it beside the output.
	FailureType reflect.Type
	// Text returns the text for a model of an answer, or of a result of Failure; nil: its JSON, as in the structured
	// content.
	Text func(answer any) string
	// Answers says that failures are answers like others, for MCP clients: isError is not set. REST has its status all the
	// same.
	Answers bool
}

// Schema returns the schema of one side of an operation, "input" or "output", without white space.
func (t Toolset) Schema(o Operation, side string) (json.RawMessage, error) {
	if own := map[string]json.RawMessage{"input": o.Schemas.Input, "output": o.Schemas.Output}[side]; own != nil {
		return own, nil
	}
	name := "schema/" + o.Name + "." + side + ".json"
	text, err := fs.ReadFile(t.Schemas, name)
	if err != nil {
		return nil, fmt.Errorf("schema of a tool: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Named returns the operation with a name; the zero one if there is none.
func Named(all []Operation, name string) Operation {
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	return Operation{}
}

// List returns the operations of toolsets, in their order.
func List(toolsets ...Toolset) (all []Operation) {
	for _, t := range toolsets {
		all = append(all, t.Operations...)
	}
	return all
}
