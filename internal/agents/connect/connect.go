// Package connect is the agent's side of the door: it copies MCP messages between a client's standard streams and a
// Claude Ops that runs elsewhere, and holds neither tokens nor rights. The programs claudeops-connect and `claudeops
// mcp-server --connect` are both made of it. It imports the standard library alone, so that the small program stays
// small.
//
// Rights are the door's. What this side sends (Lower) can take some away, and never add any.
//
// # How to add a transport
//
// A transport is a function of the type Transport: it reaches the address, says Hello in its own way (a line on a
// socket, a header of a request), reads the door's Answer, and returns a Conn on which lines of MCP pass in both
// directions from then on. It returns a *RefusedError if the door refuses, and any other error if the door cannot be
// reached, which is tried again. Its line in Transports names the scheme of its addresses. On the door's side its
// listener calls door.Host.Serve with what it accepts.
package connect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Version is that of the handshake.
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

// Answer is what the door says to a Hello, as one line of JSON.
type Answer struct {
	Version int    `json:"claudeops"`
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"` // of docs/reference/codes.md
	Message string `json:"message,omitempty"`
	Retry   bool   `json:"retry,omitempty"` // the same may be accepted later
}

// RefusedError is a door that answered and let nobody in.
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

// Transport reaches a door. address has no scheme any more. The bound of its time is that of ctx.
type Transport func(ctx context.Context, address string, hello Hello) (Conn, error)

// Transports are those that need nothing but the standard library's sockets, by the scheme of their addresses.
func Transports() map[string]Transport { return map[string]Transport{"unix": unix} }

// Dial connects to an address, SCHEME:REST. An error that is not a *RefusedError says that nobody answered, or that the
// address is malformed (*addressError).
func Dial(ctx context.Context, address string, hello Hello, transports map[string]Transport) (Conn, error) {
	scheme, rest, found := strings.Cut(address, ":")
	transport := transports[scheme]
	if !found || rest == "" || transport == nil {
		return nil, &addressError{Address: address, Schemes: slices.Sorted(maps.Keys(transports))}
	}
	return transport(ctx, rest, hello)
}

// addressError is an address that cannot be understood.
type addressError struct {
	Address string
	Schemes []string // those that there are
	Problem string   // what is wrong with it; "" where its scheme is
}

func (e *addressError) Error() string {
	if e.Problem != "" {
		return "the address cannot be used: " + e.Problem
	}
	return fmt.Sprintf("%.100q is no address: it begins with %s", e.Address, strings.Join(e.Schemes, ": or ")+":")
}
