// Package connect is the agent's side of the door: it copies MCP messages between a client's standard streams and a
// Claude Ops that runs elsewhere, and holds neither tokens nor rights. The programs claudeops-connect and `claudeops
// mcp-server --connect` are both made of it. It imports the standard library alone, so that the small program stays
// small.
//
// Rights are the door's. What this side sends (Lower) can take some away, and never add any.
package connect

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Version is the version of the handshake.
const Version = 1

// MaxHello bounds a Hello or an Answer as a line, in bytes, its end included.
const MaxHello = 4 << 10

// MaxMessage is the largest message that is kept whole, in bytes; the door takes none that is larger. Longer ones are
// passed on in pieces, so that it is the door that refuses and records them.
const MaxMessage = 4 << 20

// Hello is the first thing that a connector says, as one line of JSON.
type Hello struct {
	Version int    `json:"claudeops"`
	Ticket  string `json:"ticket,omitempty"`
	Lower
}

// Lower are rights that the agent's side gives up for a connection. The zero value gives up none.
type Lower struct {
	Tier     int  `json:"tier,omitempty"` // the highest one; 0 for that of the door
	DryRun   bool `json:"dry_run,omitempty"`
	ReadOnly bool `json:"read_only,omitempty"`
}

// Answer is the door's reply to a Hello, as one line of JSON.
type Answer struct {
	Version int    `json:"claudeops"`
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"` // of docs/reference/codes.md
	Message string `json:"message,omitempty"`
	Retry   bool   `json:"retry,omitempty"` // the same may be accepted later
}

// RefusedError reports that the door answered and refused the connection.
type RefusedError struct {
	Code, Message string
	Retry         bool // the same may be accepted later
}

func (e *RefusedError) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Conn is a connection after its handshake: lines of MCP in both directions. Read and Write may be called side by side;
// Close ends both.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error // no more is sent; answers still come
}

// Dial connects to an address, unix:PATH. An error that is not a *RefusedError says that nothing answered, or that the
// address is malformed (*usageError).
func Dial(ctx context.Context, address string, hello Hello) (Conn, error) {
	path, found := strings.CutPrefix(address, "unix:")
	if !found || path == "" {
		return nil, &usageError{fmt.Sprintf("%.100q is no address: it begins with unix:", address)}
	}
	return unix(ctx, path, hello)
}
