package stdio

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
)

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

// refusal is the answer to a message that goes no further.
type refusal struct {
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

// refuse reports the message to the hook and the log and then answers it, in this order: every answer is on record.
func (l *loop) refuse(env envelope, size int64, r refusal) {
	l.report(env, size, r.reason, r.message)
	if !r.silent {
		env.id = r.id
		l.send(env, failure(r.code, r.message, r.reason))
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

func invalidRequest(id requestID, reason Reason, message string) *refusal {
	return &refusal{reason: reason, code: mcp.INVALID_REQUEST, message: message, id: id}
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
