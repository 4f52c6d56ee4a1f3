package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxEnvelope limits the bytes of a message beside the arguments of a tools/call.
const maxEnvelope = 64 << 10

// split separates the arguments of a tools/call from a message: envelope is the message with empty arguments, and
// mcp-go gets only that. mcp-go decodes its input into maps, several times: that costs seconds for a few crafted
// megabytes, and loses duplicate names. The handler of the call decodes the arguments once.
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
