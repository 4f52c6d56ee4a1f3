package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
)

// reply is a JSON-RPC response without its id: a result or an error.
type reply struct {
	result  any
	err     *mcp.JSONRPCErrorDetails
	refused Reason // why there is no ordinary result; empty for a result
}

func failure(code int, message string, reason Reason) reply {
	details := mcp.NewJSONRPCErrorDetails(code, message, map[string]any{"reason": reason})
	return reply{err: &details, refused: reason}
}

func internalFailure() reply { return failure(mcp.INTERNAL_ERROR, textInternal, ReasonInternal) }

// ask lets mcp-go answer a message. A message without an id gets the zero reply, which is not to be sent. Whatever
// happens inside, a panic and runtime.Goexit included, the caller gets a reply that is fit for the client.
func (l *loop) ask(ctx context.Context, raw []byte, env envelope, deliver func(reply)) {
	answer := internalFailure()
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic while handling a message", slog.String("method", shorten(env.method)),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
		deliver(answer)
	}()
	message, arguments := split(raw, env)
	var own failed
	ctx = context.WithValue(withArguments(ctx, arguments), failedKey{}, &own)
	answer = l.translate(l.srv.HandleMessage(ctx, message), env)
	if answer.err != nil && own.details != nil {
		answer = reply{err: own.details, refused: ReasonProtocol}
	}
}

// failed is the error that a handler wants its client to get.
type failed struct{ details *mcp.JSONRPCErrorDetails }

type failedKey struct{}

// Fail returns an error for the handler of the request under way to return: the client gets code, message and data as
// they are. An error that a handler makes otherwise is replaced, since it may show what is inside.
func Fail(ctx context.Context, code int, message string, data any) error {
	details := mcp.NewJSONRPCErrorDetails(code, message, data)
	if f, ok := ctx.Value(failedKey{}).(*failed); ok {
		f.details = &details
	}
	return errors.New(message)
}

// translate turns mcp-go's answer into ours. Texts that would show Go internals are logged and replaced.
func (l *loop) translate(message mcp.JSONRPCMessage, env envelope) reply {
	switch m := message.(type) {
	case mcp.JSONRPCResponse:
		return reply{result: m.Result}
	case mcp.JSONRPCError:
		answer := reply{err: &m.Error, refused: ReasonProtocol}
		switch m.Error.Code {
		case mcp.INVALID_REQUEST: // params that do not decode; the text is the decoder's
			answer = failure(mcp.INVALID_PARAMS, fmt.Sprintf("The params of %s do not have the types that MCP gives them.",
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
			return reply{}
		}
	}
	l.log.Error("mcp-go gave no usable answer", slog.String("method", shorten(env.method)),
		slog.String("type", fmt.Sprintf("%T", message)))
	return internalFailure()
}

// send writes the reply to a message under its id. A result that cannot be encoded becomes an internal error.
func (l *loop) send(env envelope, r reply) {
	id := env.id
	line, err := r.encode(id)
	if err != nil {
		l.log.Error("cannot encode a result", slog.Any("error", err))
		line, err = internalFailure().encode(id)
	}
	if err == nil {
		env.to.send(line)
	}
}

func (r reply) encode(id requestID) ([]byte, error) {
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
