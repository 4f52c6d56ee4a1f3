// Package operation says what can be asked of Claude Ops, once for every way in. An Operation is a value; its MCP tool, its
// REST route with the description in OpenAPI, its command and its lines in the docs are made from it.
package operation

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// Effect is what an operation does to the world.
type Effect string

// The effects.
const (
	Read  Effect = "read" // changes nothing
	Write Effect = "write"
	Exec  Effect = "exec" // runs programs
)

// Operation is one thing that can be asked. New and NewRaw make one.
type Operation struct {
	Name    string // unique, and the name of its tool
	Summary string // one line, for people
	Effect  Effect
	// LowestTier is the lowest one that may ask. Whoever handles the call enforces it; tests hold it.
	LowestTier    gitprovider.Tier
	HonoursDryRun bool

	// The ways in. The zero value of each leaves it out.
	Tool    Tool
	Route   Route
	Command string // the words after claudeops, such as "pr list"

	// Input and Output are struct types. The tags of their fields are what all ways in know of them: json, doc, required,
	// default, example, and the limits of strictjson.Limits.
	Input, Output reflect.Type
	// Schemas are those of an operation that is found while the program runs; see Toolset.Found. Its types say nothing then.
	Schemas Schemas
	Handle  Handler
}

// Schemas are the JSON Schemas of the two sides of an operation. Both are objects.
type Schemas struct{ Input, Output json.RawMessage }

// Handler does what an operation is for. The answer is of the operation's output type. An error is a *fault.Error, perhaps
// with a request id (see Logged and Recorded).
type Handler func(ctx context.Context, call Call) (any, error)

// Call is one request for an operation.
type Call struct {
	Caller Caller
	// Ceiling is the highest tier that the caller's credential has; Unlimited where the server's own tier alone decides.
	Ceiling gitprovider.Tier
	// Person says that a person asks at a door for people. The server's tier, which is that of its agent, does not bind them.
	Person bool
	// Arguments is the JSON object of the input, as it came. Nobody has looked at it.
	Arguments []byte
}

// Unlimited is the ceiling of a caller whom no credential limits.
const Unlimited = gitprovider.TierRemediate

// New completes an operation whose arguments are decoded for it: strictly, within the limits of In, and refused with
// everything that is wrong with them at once.
func New[In, Out any](o Operation, handle func(ctx context.Context, call Call, in In) (Out, error)) Operation {
	return NewRaw[In](o, func(ctx context.Context, call Call) (Out, error) {
		var in In
		if violations := strictjson.DecodeWithinLimits(call.Arguments, &in, strictjson.Options{}); len(violations) > 0 {
			var none Out
			return none, fault.Refusal(violations)
		}
		return handle(ctx, call, in)
	})
}

// NewRaw completes an operation that decodes its arguments itself, because it has more to say about them than New.
func NewRaw[In, Out any](o Operation, handle func(ctx context.Context, call Call) (Out, error)) Operation {
	o.Input, o.Output = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	o.Handle = func(ctx context.Context, call Call) (any, error) { return handle(ctx, call) }
	return o
}
