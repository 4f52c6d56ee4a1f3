package stdio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// inspect reads the envelope of a line and decides whether it may go on. inFlight tells whether an id is taken.
//
// An answer carries the id of its request only where that is beyond doubt: never for a text that is not JSON, and never
// an id that another request in flight owns, because its client would take the refusal for the answer to that request.
func inspect(f frame, limit int, inFlight func(requestID) bool) (envelope, *messageRejection) {
	if f.tooLong {
		return inspectTooLong(f, limit, inFlight)
	}
	env, err := parseEnvelope(f.raw)
	switch {
	case !utf8.Valid(f.raw):
		return env, &messageRejection{reason: ReasonBadUTF8, code: mcp.PARSE_ERROR,
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
	if !env.id.isSet() || !inFlight(env.id) {
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

func inspectTooLong(f frame, limit int, inFlight func(requestID) bool) (envelope, *messageRejection) {
	env, _ := parseEnvelope(f.raw) // it breaks off at the end of the head
	if !env.id.isSet() {
		env.id = trailingID(f.tail)
	}
	r := invalidRequest(env.id, ReasonTooLarge, fmt.Sprintf(
		"The message has %d bytes and the limit is %d; send less at once, for example fewer or smaller files.",
		f.size, limit))
	if env.id.isSet() && inFlight(env.id) {
		r.id = requestID{}
	}
	return env, r
}

// halfCharacter refuses a line that is JSON but for an escape such as \ud800, which some encoders write: its grammar is
// sound, so its id is beyond doubt. Any other line is malformed; env holds the fields that were read.
func halfCharacter(raw []byte, env envelope, err error, inFlight func(requestID) bool) (envelope, *messageRejection) {
	whole, wholeErr := parseEnvelope(raw, jsontext.AllowInvalidUTF8(true))
	if wholeErr != nil || whole.top != '{' {
		return env, malformed(err)
	}
	r := malformed(err)
	r.code, r.message = mcp.INVALID_REQUEST, `The message has an escape such as \ud800, which is half of a character; send whole characters.`
	if !strings.ContainsRune(whole.id.raw, utf8.RuneError) && whole.id.isSet() && !inFlight(whole.id) {
		r.id = whole.id
	}
	return whole, r
}

func malformed(err error) *messageRejection {
	where := ""
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		where = fmt.Sprintf(" (see byte %d)", syntax.ByteOffset)
	}
	return &messageRejection{reason: ReasonMalformed, code: mcp.PARSE_ERROR,
		message: "The line is not one valid JSON value" + where + "; send each JSON-RPC message complete on one line."}
}

// checkEnvelope holds an object to JSON-RPC 2.0 and to MCP's additions.
func checkEnvelope(raw []byte, env *envelope) *messageRejection {
	bad := func(message string) *messageRejection { return invalidRequest(env.id, ReasonInvalidRequest, message) }
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
	case env.idGiven && !env.id.isSet():
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

func checkToolCall(env *envelope) *messageRejection {
	message := ""
	switch args := env.params.arguments; {
	case !env.params.named || env.params.name == "":
		message = "A tools/call needs the tool's name in params.name, a string that is not empty."
	case args != 0 && args != '{' && args != 'n':
		message = "The arguments of a tools/call must be an object."
	default:
		return nil
	}
	return &messageRejection{reason: ReasonInvalidParams, code: mcp.INVALID_PARAMS, message: message, id: env.id}
}

// Reason says why a message never became an ordinary tool result. The texts are stable: they go to the audit and, as
// error.data.reason, to the client.
type Reason string

// The reasons.
const (
	// longer than Options.MaxMessage, or more than 64 KiB beside the arguments
	ReasonTooLarge       Reason = "too_large"
	ReasonBadUTF8        Reason = "bad_utf8"        // not valid UTF-8
	ReasonMalformed      Reason = "malformed"       // not one valid JSON value
	ReasonBatch          Reason = "batch"           // an array of messages
	ReasonTooDeep        Reason = "too_deep"        // nests deeper than 64 levels
	ReasonDuplicateKey   Reason = "duplicate_key"   // a member of the envelope is given twice
	ReasonInvalidRequest Reason = "invalid_request" // no JSON-RPC request object
	ReasonInvalidParams  Reason = "invalid_params"  // a tools/call without a usable name or arguments
	ReasonDuplicateID    Reason = "duplicate_id"    // a request with this id is in flight
	ReasonBusy           Reason = "busy"            // the queue of waiting calls is full
	ReasonCancelled      Reason = "cancelled"       // a tools/call that the client cancelled before it started
	ReasonShutdown       Reason = "shutdown"        // a tools/call that the end of the server overtook
	ReasonProtocol       Reason = "protocol_error"  // mcp-go refused a tools/call: unknown tool, unusable _meta
	ReasonInternal       Reason = "internal_error"  // a panic, or a Go error that a handler returned
)

// maxNoted bounds the method and tool name in a Rejection, in bytes.
const maxNoted = 128

// Rejection describes a message that was refused, or a call that got no ordinary result. Fields that could not be
// read are empty.
type Rejection struct {
	Reason  Reason
	Method  string // at most 128 bytes of it
	Tool    string // the tool that a tools/call names; at most 128 bytes of it
	ID      string // the id as JSON text
	Size    int64  // bytes of the message
	Message string // the sentence sent to the client
}

// messageRejection is the answer to a message that goes no further.
type messageRejection struct {
	reason  Reason
	code    int // JSON-RPC error code
	message string
	id      requestID // the id to answer under
	silent  bool      // nothing is sent
}

// codeServer is the JSON-RPC code for conditions of the server itself: busy, shutting down (JSON-RPC 2.0 §5.1 leaves
// -32099 to -32000 to servers; MCP takes from -32001 downwards).
const codeServer = -32000

const (
	textInternal = "Something went wrong inside the server; its log has the details."
	textShutdown = "The server is shutting down and did not start this call; send it again to the next server."
	textCutOff   = "The call did not finish before the server had to stop; it may or may not have taken effect, so look " +
		"before you repeat it."
)

// rejectMessage reports the message to the hook and the log and then answers it, in this order: every answer is on
// record.
func (l *loop) rejectMessage(env envelope, size int64, r messageRejection) {
	l.report(env, size, r.reason, r.message)
	if !r.silent {
		env.id = r.id
		l.reply(env, errorReply(r.code, r.message, r.reason))
	}
}

// report tells the hook and the log. A panic of the hook is logged and goes no further.
func (l *loop) report(env envelope, size int64, reason Reason, message string) {
	rejection := Rejection{
		Reason: reason, Method: shorten(env.method), Tool: shorten(env.params.name), ID: env.id.raw,
		Size: size, Message: message,
	}
	l.log.Warn("mcp message refused", slog.String("reason", string(reason)), slog.String("method", rejection.Method),
		slog.String("tool", rejection.Tool), slog.Int64("bytes", size))
	if l.opts.OnReject == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic in OnReject", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	l.opts.OnReject(context.WithoutCancel(l.base), rejection)
}

func invalidRequest(id requestID, reason Reason, message string) *messageRejection {
	return &messageRejection{reason: reason, code: mcp.INVALID_REQUEST, message: message, id: id}
}

func shorten(s string) string {
	if len(s) <= maxNoted {
		return s
	}
	cut := maxNoted
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not in the middle of a character
		cut--
	}
	return s[:cut]
}
