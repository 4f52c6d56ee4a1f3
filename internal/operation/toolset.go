package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/claudeops/claudeops/internal/fault"
)

// Toolset is a list of operations that an operator enables by one name.
type Toolset struct {
	Name         string // as CLAUDEOPS_TOOLSETS has it
	Instructions string // for a model that has not loaded a tool yet
	// Schemas has for each tool the files schema/NAME.input.json and schema/NAME.output.json. `make golden` writes them, so
	// that no program has to make them when it starts.
	Schemas    fs.FS
	Operations []Operation
	// Reject records a request for an operation that does more than read, and that never came to it: its caller may not, or it
	// could not be read. name is "" if too little of it could be read to know. A toolset that only reads has none.
	Reject func(ctx context.Context, call Call, name string, why *fault.Error)
}

// Schema is what Schemas has for one side of an operation, "input" or "output", without white space.
func (t Toolset) Schema(o Operation, side string) (json.RawMessage, error) {
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

// List is the operations of toolsets, in their order.
func List(toolsets ...Toolset) (all []Operation) {
	for _, t := range toolsets {
		all = append(all, t.Operations...)
	}
	return all
}
