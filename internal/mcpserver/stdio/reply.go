package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// rpcReply is a JSON-RPC response without its id: a result or an error.
type rpcReply struct {
	result  any
	err     *mcp.JSONRPCErrorDetails
	refused Reason // why there is no ordinary result; empty for a result
}

func errorReply(code int, message string, reason Reason) rpcReply {
	details := mcp.NewJSONRPCErrorDetails(code, message, map[string]any{"reason": reason})
	return rpcReply{err: &details, refused: reason}
}

func internalFailure() rpcReply { return errorReply(mcp.INTERNAL_ERROR, textInternal, ReasonInternal) }

// dispatchMessage lets mcp-go answer a message. A message without an id gets the zero reply, which is not to be sent.
// Whatever happens inside, a panic and runtime.Goexit included, the caller gets a reply that is fit for the client.
func (l *loop) dispatchMessage(ctx context.Context, raw []byte, env envelope, deliver func(rpcReply)) {
	answer := internalFailure()
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic while handling a message", slog.String("method", shorten(env.method)),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
		deliver(answer)
	}()
	message, arguments := split(raw, env)
	var own handlerError
	ctx = context.WithValue(withArguments(ctx, arguments), failedKey{}, &own)
	answer = l.translate(l.srv.HandleMessage(ctx, message), env)
	if answer.err != nil && own.details != nil {
		answer = rpcReply{err: own.details, refused: ReasonProtocol}
	}
}

// handlerError is the error that a handler wants its client to get.
type handlerError struct{ details *mcp.JSONRPCErrorDetails }

type failedKey struct{}

// Fail returns an error for the handler of the request under way to return: the client gets code, message and data as
// they are. An error that a handler makes otherwise is replaced, since it may show what is inside.
func Fail(ctx context.Context, code int, message string, data any) error {
	details := mcp.NewJSONRPCErrorDetails(code, message, data)
	if f, ok := ctx.Value(failedKey{}).(*handlerError); ok {
		f.details = &details
	}
	return errors.New(message)
}

// translate turns mcp-go's answer into ours. Texts that would show Go internals are logged and replaced.
func (l *loop) translate(message mcp.JSONRPCMessage, env envelope) rpcReply {
	switch m := message.(type) {
	case mcp.JSONRPCResponse:
		return rpcReply{result: m.Result}
	case mcp.JSONRPCError:
		answer := rpcReply{err: &m.Error, refused: ReasonProtocol}
		switch m.Error.Code {
		case mcp.INVALID_REQUEST: // params that do not decode; the text is the decoder's
			answer = errorReply(mcp.INVALID_PARAMS, fmt.Sprintf("The params of %s do not have the types that MCP gives them.",
				shorten(env.method)), ReasonInvalidParams)
		case mcp.INTERNAL_ERROR, mcp.PARSE_ERROR: // an error that a handler returned; a parse error cannot happen
			answer = internalFailure()
		default:
			return answer
		}
		l.log.Warn("an error of mcp-go was replaced", slog.String("method", shorten(env.method)),
			slog.Int("code", m.Error.Code), slog.String("error", m.Error.Message))
		return answer
	case nil:
		if !env.idGiven {
			return rpcReply{}
		}
	}
	l.log.Error("mcp-go gave no usable answer", slog.String("method", shorten(env.method)),
		slog.String("type", fmt.Sprintf("%T", message)))
	return internalFailure()
}

// reply writes the reply to a message under its id.
func (l *loop) reply(env envelope, r rpcReply) {
	if line := l.encodeReply(env.id, r); line != nil {
		env.to.deliver(line)
	}
}

// encodeReply returns the line of a reply. A result that cannot be encoded becomes an internal error.
func (l *loop) encodeReply(id requestID, r rpcReply) []byte {
	line, err := r.encode(id)
	if err != nil {
		l.log.Error("cannot encode a result", slog.Any("error", err))
		line, _ = internalFailure().encode(id) // which can be encoded
	}
	return line
}

func (r rpcReply) encode(id requestID) ([]byte, error) {
	switch {
	case r.err != nil:
		return encodeLine(struct {
			JSONRPC string                   `json:"jsonrpc"`
			ID      json.RawMessage          `json:"id"`
			Error   *mcp.JSONRPCErrorDetails `json:"error"`
		}{mcp.JSONRPC_VERSION, id.json(), r.err})
	case r.result != nil:
		return encodeLine(struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  any             `json:"result"`
		}{mcp.JSONRPC_VERSION, id.json(), r.result})
	}
	return nil, errors.New("a reply needs a result or an error")
}

// writer owns the output: one goroutine, one Write per message.
type writer struct {
	out    io.Writer
	log    *slog.Logger
	notes  <-chan mcp.JSONRPCNotification // sent to all clients
	lines  chan outLine
	gone   <-chan struct{} // closed when all waiting must end
	quit   chan struct{}   // closed by the owner after the last line
	done   chan struct{}   // closed when run has returned
	failed chan struct{}   // closed after a failed Write, when err is set
	err    error
	also   func(mcp.JSONRPCNotification) // also gets notifications to all clients; nil for none
}

// outlet takes the output of one message: lines, and the end.
type outlet interface {
	deliver(line []byte)
	endOutput()
}

// outLine is a line on its way out.
type outLine struct {
	text    []byte
	written chan struct{} // closed after the attempt to write it
}

func newWriter(out io.Writer, notes <-chan mcp.JSONRPCNotification, gone <-chan struct{}, log *slog.Logger) *writer {
	return &writer{
		out: out, log: log, notes: notes, gone: gone, lines: make(chan outLine),
		quit: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
}

// writeLoop writes until quit is closed or a Write fails.
func (w *writer) writeLoop() {
	defer close(w.done)
	for {
		select {
		case note := <-w.notes:
			w.writeNotification(note)
		case line := <-w.lines:
			w.pendingNotes() // sent before the answer, so written before it
			w.write(line.text)
			close(line.written)
		case <-w.quit:
			w.pendingNotes()
			return
		case <-w.failed:
			return
		}
	}
}

func (w *writer) pendingNotes() {
	for range len(w.notes) {
		w.writeNotification(<-w.notes)
	}
}

func (w *writer) writeNotification(note mcp.JSONRPCNotification) {
	if w.also != nil {
		w.also(note)
	}
	line, err := encodeLine(note)
	if err != nil {
		w.log.Error("cannot encode a notification", slog.String("method", note.Method), slog.Any("error", err))
		return
	}
	w.write(line)
}

func (w *writer) write(line []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(line); err != nil {
		w.err = err
		close(w.failed)
	}
}

// deliver writes one encoded line and waits until that is done, so that no consequence of the line can overtake it. The
// line is dropped if the output is broken or the time of the connection is over.
func (w *writer) deliver(text []byte) {
	line := outLine{text: text, written: make(chan struct{})}
	select {
	case w.lines <- line:
	case <-w.failed:
		return
	case <-w.gone:
		return
	}
	select {
	case <-line.written:
	case <-w.gone:
	}
}

// endOutput implements outlet. It does nothing, since the output of other messages follows.
func (w *writer) endOutput() {}

// encodeLine encodes v as one line of JSON with its newline. '<', '>' and '&' are not escaped, as both json.Marshal and
// the MarshalJSON methods of mcp-go would have it; U+2028 and U+2029 are, since some readers take them for line ends.
func encodeLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(line, []byte(`\u00`)) {
		line, err = jsontext.AppendFormat(nil, line, jsontext.AllowDuplicateNames(true),
			jsontext.PreserveRawStrings(false), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(true))
	}
	return append(line, '\n'), err
}
