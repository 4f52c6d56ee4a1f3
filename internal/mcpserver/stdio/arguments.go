package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxEnvelope is how many bytes a message may have beside the arguments of a tools/call.
const maxEnvelope = 64 << 10

// split takes the arguments of a tools/call out of a message: envelope is the message with empty ones in their place,
// which is all that mcp-go gets to see. It decodes what it gets into maps, several times, which costs seconds for a few
// megabytes that are made for it, and loses duplicate names. Whoever handles the call decodes the arguments once.
func split(raw []byte, env envelope) (envelope []byte, arguments json.RawMessage) {
	p := env.params
	if env.method != string(mcp.MethodToolsCall) || p.arguments != '{' || p.to <= p.from {
		return raw, nil
	}
	value := bytes.TrimLeft(raw[p.from:p.to], ": \t\r\n")
	from := p.to - len(value)
	envelope = make([]byte, 0, len(raw)-len(value)+2)
	envelope = append(append(append(envelope, raw[:from]...), "{}"...), raw[p.to:]...)
	return envelope, json.RawMessage(value)
}

// checkSize refuses a message that is large beside its arguments.
func checkSize(raw []byte, env envelope) *refusal {
	size := len(raw)
	if p := env.params; env.method == string(mcp.MethodToolsCall) {
		size -= p.to - p.from
	}
	if size <= maxEnvelope {
		return nil
	}
	return invalidRequest(env.id, ReasonTooLarge, fmt.Sprintf(
		"The message has %d bytes beside the arguments of a tools/call and the limit is %d.", size, maxEnvelope))
}

type argumentsKey struct{}

// Arguments returns the JSON text of the arguments of the tools/call under way, exactly as the client sent it:
// duplicate names, spelling of names and the digits of numbers are still there. mcp-go's own decoded arguments are
// always empty. It is valid UTF-8, one JSON object, and must not be changed; nil outside of a call, and of one without
// arguments.
func Arguments(ctx context.Context) json.RawMessage {
	raw, _ := ctx.Value(argumentsKey{}).(json.RawMessage)
	return raw
}

func withArguments(ctx context.Context, arguments json.RawMessage) context.Context {
	return context.WithValue(ctx, argumentsKey{}, arguments)
}
