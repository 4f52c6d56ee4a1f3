package operation

import (
	"time"
)

// Tool describes an operation to MCP clients.
type Tool struct {
	Title       string // "" if it is not offered to them
	Description string // for a model: what it does, what to do about its answers
	Destructive bool   // it may overwrite or remove what somebody else made
	// Repeatable says that the same call again has no further effect. Reading always is.
	Repeatable bool
}

// ToolPath begins the path of each tool of the other toolsets than that of pull requests; its name follows.
const ToolPath = "/tools/"

// Route describes an operation to REST.
type Route struct {
	Method string // "" if REST does not have it
	// Path is the path below /api/v1, such as /prs/{number}. A part in braces is the field of the input with the tag path;
	// the other fields are the body of a route with MaxBody, and the query of any other. {path...} at its end takes
	// slashes, too.
	Path  string
	ID    string // operationId in OpenAPI; a client's generated code is named for it
	Notes string // what only callers of REST need to know

	Status   int    // of success; 0: 200
	Creates  bool   // the output is a Creation
	Keyed    bool   // it takes an Idempotency-Key
	MaxBody  int64  // bytes that a body may have; 0 if it reads none
	TooLarge string // what to do about a larger one
	// Takes is the longest that it may take, the time that it waits for others aside; 0 for what any request may.
	Takes time.Duration
}

// Creation is an output that may be something new. REST answers 201 then, and 200 otherwise.
type Creation interface{ Created() bool }

// Located is an output about something that has an address of its own: what follows /api/v1. REST names it as Location.
type Located interface{ Location() string }

// Changing is an output that may be different the next time without anybody's doing, so that REST gives it no ETag
// then.
type Changing interface{ Changes() bool }

// Bare is an output that the contract of its toolset has as a list. MCP needs an object around it; the command line
// prints the list.
type Bare interface {
	Bare() (list any, notes []string)
}

// Partial is an output that may lack a part of what was asked for. The command line then ends with an error, after its
// answer.
type Partial interface{ Incomplete() bool }
