// Package handler holds what the handlers of internal/web share: the request with its caller, the response, the route,
// and the reading of queries and bodies. It knows neither pages nor the API, and is below both.
package handler

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Func handles a request that the guard has admitted.
type Func func(*Request) (Response, error)

// Request is an HTTP request that the guard has admitted.
type Request struct {
	*http.Request
	ID        string // request id of this exchange; an attempt has its own
	Principal access.Principal
	// checks again that Principal may make it; nil where there was no check; see operation.Caller
	Recheck  func(ctx context.Context) error
	Page     bool // it is for a page, rather than for a program
	Limit    BodyLimit
	Position string // what has changed before the page was begun; see live.Hub
	Next     string // where a person goes when signed in, as the form has it that was sent; "" for none
}

// Caller returns the caller, for the record.
func (r *Request) Caller() operation.Caller {
	door := record.DoorREST
	if r.Page {
		door = record.DoorWeb
	}
	return operation.Caller{Actor: r.Principal.Actor.At(door), TokenHash: r.Principal.TokenHash, Recheck: r.Recheck}
}

// Key tells callers apart, in what is kept for each of them.
func Key(who record.Actor) string {
	account := who.Account()
	return account.Issuer + " " + account.Subject
}

// Call returns a request for an act of a person, whose row has the id of the exchange.
func (r *Request) Call(arguments []byte) operation.Call {
	return operation.Call{Caller: r.Caller(), Ceiling: r.Principal.Ceiling, Scopes: r.Principal.Scopes,
		Arguments: arguments, ID: r.ID}
}

// Response is a handler's result. Without Bytes, Value is encoded as JSON.
type Response struct {
	Status int // 0: 200
	Value  any
	Header http.Header

	Bytes       []byte
	ContentType string // of Bytes
	Volatile    bool   // is different each time, so that a tag would be useless

	// Stream writes a body of the ContentType whose length is not known in advance. If it fails, the connection is cut.
	Stream func(w io.Writer) error
}

// Route is an address with its handler and what the guard asks of its callers.
type Route struct {
	Method, Pattern string
	Scope           access.Scope // "" admits everybody
	Agents          bool         // only for the tokens of agents, which the handler looks at; Scope is "" then
	Page            bool         // for people; no part of the API's description
	Handle          Func
	Body            *BodyLimit // nil only for GET
	// Turns bounds how many requests of this and other routes are handled at the same time; nil for any number.
	Turns *Turns
	// Takes is the longest that it may take, the time that it waits for its turn aside; 0 for what any request may.
	Takes time.Duration
	// Refused records that a caller who is known was refused, and returns the error to answer with; nil where nothing is
	// recorded.
	Refused func(*Request, *fault.Error) error
	Doc     Doc
}

// Doc describes a route of the API.
type Doc struct {
	ID, Summary, Description string

	Params      any         // struct of the query; nil for none
	Body        any         // type of the body; nil for none
	BodyType    string      // content type of a body that is not JSON; Body is its example then
	Answers     map[int]any // types by status; nil for no body
	ContentType string      // of answers that are not JSON
	Keyed       bool        // takes Idempotency-Key
}

// OK describes the usual answer: 200 with this type.
func OK(body any) map[int]any { return map[int]any{http.StatusOK: body} }

// BodyLimit limits the body of a request. It is as small as the purpose of the route permits, since we have to read any
// body that is sent, even by strangers where no credentials are required.
type BodyLimit struct {
	Bytes  int64
	Advice string // what to do about a larger one
	// Within limits how long the body may take to arrive; 0 means the limit of any request. It is short where no
	// credentials are required.
	Within time.Duration
}

// OpenBodyTime limits how long a body may take to arrive where no credentials are required.
const OpenBodyTime = 10 * time.Second

// NoBody returns the limit for routes whose method permits a body but that read none.
func NoBody() *BodyLimit { return &BodyLimit{} }

// Turns lets a few at a time do something.
type Turns struct{ places chan struct{} }

// NewTurns makes Turns for n at a time.
func NewTurns(n int) *Turns { return &Turns{make(chan struct{}, n)} }

// Wait waits for a turn, which ends with done.
func (t *Turns) Wait(ctx context.Context) (done func(), err error) {
	select {
	case t.places <- struct{}{}:
		return func() { <-t.places }, nil
	case <-ctx.Done():
		return nil, fault.From(ctx.Err())
	}
}
