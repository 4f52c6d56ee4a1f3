package operation

import "github.com/claudeops/claudeops/internal/access"

// Tool is how MCP clients see an operation.
type Tool struct {
	Title       string // "" if it is not offered to them
	Description string // for a model: what it does, what to do about its answers
	Destructive bool   // it may overwrite or remove what somebody else made
	// Repeatable says that the same call again has no further effect. Reading always is.
	Repeatable bool
}

// Route is how REST has an operation.
type Route struct {
	Method string // "" if REST does not have it
	// Path is what follows /api/v1, such as /prs/{number}. A part in braces is the field of the input with the tag path; the
	// other fields of the input of a GET are its query, those of a POST its body.
	Path  string
	Scope access.Scope // that the caller's token needs
	ID    string       // operationId in OpenAPI; a client's generated code is named for it
	Notes string       // what only callers of REST need to know

	// Creates says that the output tells by a method Created() bool whether something was made: the status is 201 then.
	Creates bool
	// Keyed routes take an Idempotency-Key.
	Keyed bool
	// Volatile answers are different each time, so that they get no ETag.
	Volatile bool
	// MaxBody bounds the body of a POST, in bytes; TooLarge says what to do about a larger one.
	MaxBody  int64
	TooLarge string
}
