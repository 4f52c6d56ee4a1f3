// Package httpfault makes an http.Handler misbehave as networks and servers do, and records what it was asked.
//
// It stands in front of a fake server in tests of clients. It causes failures that a client can meet: connections that
// break before or after the server acted, answers that stop half-way, gateways that answer for a server that has acted.
package httpfault

import "net/http"

// Kind is one way to misbehave.
type Kind string

// The kinds. "next" is the handler behind; where it is called, it acts in full and its answer is withheld.
const (
	ResetBefore     Kind = "reset_before"      // the connection is reset, next is not called
	ResetAfter      Kind = "reset_after"       // next acts, then the connection is reset without an answer
	BadGatewayAfter Kind = "bad_gateway_after" // next acts, the answer is 502 with an HTML page
	Stall           Kind = "stall"             // no answer until the client goes away, next is not called
	StallAfter      Kind = "stall_after"       // next acts, then no answer until the client goes away
	Truncated       Kind = "truncated"         // next's answer with its full length announced, half of it sent, then cut
	Oversized       Kind = "oversized"         // 200 and JSON that goes on until the client stops, or 1 GiB
	Late            Kind = "late"              // the connection is reset; next acts when Handler.ActLate is called
	// no answer until the client goes away; next acts when Handler.ActLate is called
	LateStall Kind = "late_stall"
	LateFirst Kind = "late_first" // what Late and LateStall have kept acts, then next answers as ever
	HTML      Kind = "html"       // 200 and an HTML page, next is not called
	Status    Kind = "status"     // Fault.Status with Fault.Header and Fault.Body, next is not called
	Redirect  Kind = "redirect"   // Fault.Status (302 if zero) to Fault.Target and the same path and query
)

// Fault is one misbehaviour. Fields that a Kind does not name are ignored by it, except Header, which is added to every
// answer that a Kind makes itself.
type Fault struct {
	Kind   Kind
	Status int         // Status: the answer's status, 500 if zero. Redirect: 302 if zero
	Header http.Header // added to the answer
	Body   string      // Status, HTML: the answer's body; HTML has a page of its own if empty
	Target string      // Redirect: scheme and host, perhaps with a path to stand before the request's path
}

// Seen is a request as it arrived.
type Seen struct {
	Method string
	Path   string // escaped, no query
	Query  string // raw
	Header http.Header
	Body   []byte
	Status int // of the answer; 0 while there is none, and when the connection was or will be cut
}
