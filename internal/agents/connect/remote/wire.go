// Package remote is the transport of a connector (internal/agents/connect) over HTTPS, to a Claude Ops on another
// machine. It is apart from internal/agents/connect because HTTP and TLS would make the small program large.
//
// # The wire
//
// It has to pass through ordinary reverse proxies: HTTP/1.1, small bodies, no body and answer at the same time.
//
//   - POST Path opens a connection. Its body is connect.Hello without the ticket, which goes as `Authorization: Bearer`. The answer has no
//     end: server-sent events, the first of which is Opened, and each other one a message of MCP. Comments in between keep proxies from taking
//     the answer for dead. A connection that is refused is a problem document, as everywhere in REST.
//   - POST Path/CONNECTION?seq=N sends the next bytes of what the client says, at most MaxChunk of them. N counts from 1. The server takes
//     each N once and in order, so that a request without an answer is sent again: 204 for one that it has already.
//   - ...&last=true says that nothing follows.
//
// The connection is over when the answer to the first request ends, for whatever reason; the client opens another one then. Nothing is
// continued, so that no message can come twice. What became of a call that had no answer is found by making it again (connect.Run).
package remote

import "github.com/claudeops/claudeops/internal/agents/connect"

// Path is where connections are opened, below the base path of the server.
const Path = "/api/v1/connector"

// MaxChunk is how many bytes one request sends at most: less than the bodies that proxies refuse unless they are told otherwise (1 MiB).
const MaxChunk = 256 << 10

// Types of the contents.
const (
	HelloType  = "application/json"
	ChunkType  = "application/octet-stream"
	EventsType = "text/event-stream"
)

// Opened is the first event of a connection.
type Opened struct {
	connect.Answer
	// Connection is its id. It cannot be guessed, and is of use with the token alone that the connection was opened with.
	Connection string `json:"connection"`
}
