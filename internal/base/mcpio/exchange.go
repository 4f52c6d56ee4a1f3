// Package mcpio holds what servers of MCP share: a message with the writer for its replies, and a bound on the
// work that runs at a time.
package mcpio

import "context"

// Exchange pairs a message of a client with the writer for its replies. It connects a transport whose messages each
// arrive in a request of their own (HTTP) with the loop that answers them. All fields are required, but Context, Alone
// and Size.
type Exchange struct {
	// Message is one JSON text. Of a message that is too long it is the beginning; Size says how long the whole is.
	Message []byte
	Size    int64 // bytes of the whole; 0 for those of Message
	// Context ends when the client takes the request back; nil for a client that says so in a message.
	Context context.Context //nolint:containedctx // it is the request's, which outlives no call
	// Alone says that the id means something within this exchange only: other exchanges may have the same.
	Alone bool
	// Say takes a line of JSON with its newline, and keeps it: notifications of a call first, its answer last. It must not
	// wait for the client.
	Say func(line []byte)
	// End is called once, when nothing more is said.
	End func()
}

// MayTakeLong reports whether requests with a method may ask other machines or stay open. All others are answered at
// once, unknown methods too.
func MayTakeLong(method string) bool {
	switch method {
	case "tools/call", "resources/read", "prompts/get", "subscriptions/listen":
		return true
	}
	return false
}
