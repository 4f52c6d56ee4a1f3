package stdio

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// inspect reads the envelope of a line and decides whether it may go on. inFlight tells whether an id is taken.
//
// An answer carries the id of its request only where that is beyond doubt: never for a text that is not JSON, and never
// an id that another request in flight owns, because its client would take the refusal for the answer to that request.
func inspect(f frame, limit int, inFlight func(requestID) bool) (envelope, *refusal) {
	if f.tooLong {
		return inspectTooLong(f, limit, inFlight)
	}
	env, err := parseEnvelope(f.raw)
	switch {
	case !utf8.Valid(f.raw):
		return env, &refusal{reason: ReasonBadUTF8, code: mcp.PARSE_ERROR,
			message: "The message is not valid UTF-8; encode it as UTF-8 and send it again."}
	case err != nil:
		return halfCharacter(f.raw, env, err, inFlight)
	case env.top == '[':
		return env, invalidRequest(requestID{}, ReasonBatch,
			"Batches are not supported; send each JSON-RPC message as an object on a line of its own.")
	case env.top != '{':
		return env, invalidRequest(requestID{}, ReasonInvalidRequest, "A message must be a JSON-RPC 2.0 object.")
	}
	refused := checkEnvelope(f.raw, &env)
	if !env.id.known() || !inFlight(env.id) {
		return env, refused
	}
	switch {
	case refused != nil:
		refused.id = requestID{}
	case !env.response:
		refused = invalidRequest(requestID{}, ReasonDuplicateID, fmt.Sprintf(
			"A request with the id %s is still in flight; give every request an id of its own.", env.id.raw))
	}
	return env, refused
}

func inspectTooLong(f frame, limit int, inFlight func(requestID) bool) (envelope, *refusal) {
	env, _ := parseEnvelope(f.raw) // it breaks off at the end of the head
	if !env.id.known() {
		env.id = trailingID(f.tail)
	}
	r := invalidRequest(env.id, ReasonTooLarge, fmt.Sprintf(
		"The message has %d bytes and the limit is %d; send less at once, for example fewer or smaller files.",
		f.size, limit))
	if env.id.known() && inFlight(env.id) {
		r.id = requestID{}
	}
	return env, r
}

// halfCharacter refuses a line that is JSON but for an escape such as \ud800, which some encoders write: its grammar is
// sound, so its id is beyond doubt. Any other line is malformed; env holds the fields that were read.
func halfCharacter(raw []byte, env envelope, err error, inFlight func(requestID) bool) (envelope, *refusal) {
	whole, wholeErr := parseEnvelope(raw, jsontext.AllowInvalidUTF8(true))
	if wholeErr != nil || whole.top != '{' {
		return env, malformed(err)
	}
	r := malformed(err)
	r.code, r.message = mcp.INVALID_REQUEST, `The message has an escape such as \ud800, which is half of a character; send whole characters.`
	if !strings.ContainsRune(whole.id.raw, utf8.RuneError) && whole.id.known() && !inFlight(whole.id) {
		r.id = whole.id
	}
	return whole, r
}

func malformed(err error) *refusal {
	where := ""
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		where = fmt.Sprintf(" (see byte %d)", syntax.ByteOffset)
	}
	return &refusal{reason: ReasonMalformed, code: mcp.PARSE_ERROR,
		message: "The line is not one valid JSON value" + where + "; send each JSON-RPC message complete on one line."}
}

// checkEnvelope holds an object to JSON-RPC 2.0 and to MCP's additions.
func checkEnvelope(raw []byte, env *envelope) *refusal {
	bad := func(message string) *refusal { return invalidRequest(env.id, ReasonInvalidRequest, message) }
	isRequest := env.method != "" || env.methodBad
	switch {
	case env.flaw != nil:
		return invalidRequest(env.id, env.flaw.reason, env.flaw.message)
	case checkSize(raw, *env) != nil:
		return checkSize(raw, *env)
	case env.version != mcp.JSONRPC_VERSION:
		return bad(`The member "jsonrpc" must be "2.0".`)
	case env.response && !isRequest:
		return nil
	case env.idGiven && !env.id.known():
		return bad(fmt.Sprintf("The id must be a string of at most %d bytes or an integer; null is not allowed.",
			maxIDLength))
	case env.response:
		return bad("A message has either a method or a result, not both.")
	case env.method == "":
		return bad(`A request needs a "method", a string that is not empty.`)
	case !env.idGiven && !strings.HasPrefix(env.method, "notifications/"):
		return bad("A request needs an id, a string or an integer; only notifications go without.")
	case env.params.kind != 0 && env.params.kind != '{' && env.params.kind != 'n':
		return bad("The params must be an object.")
	case env.method == string(mcp.MethodToolsCall):
		return checkToolCall(env)
	}
	return nil
}

func checkToolCall(env *envelope) *refusal {
	message := ""
	switch args := env.params.arguments; {
	case !env.params.named || env.params.name == "":
		message = "A tools/call needs the tool's name in params.name, a string that is not empty."
	case args != 0 && args != '{' && args != 'n':
		message = "The arguments of a tools/call must be an object."
	default:
		return nil
	}
	return &refusal{reason: ReasonInvalidParams, code: mcp.INVALID_PARAMS, message: message, id: env.id}
}
