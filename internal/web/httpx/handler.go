// Package httpx holds what the handlers of internal/web share: the guard that every request passes, the request with
// its caller, the response, the route, and the reading of queries and bodies. It knows neither pages nor the API.
package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
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
	Position string       // what has changed before the page was begun; see live.Hub
	Lacks    access.Scope // that the caller, who is known, was refused for; "" for none
	Next     string       // where a person goes when signed in, as the form has it that was sent; "" for none
}

// Caller returns the caller, for the record.
func (r *Request) Caller() operation.Caller {
	door := record.DoorREST
	if r.Page {
		door = record.DoorWeb
	}
	return operation.Caller{Actor: r.Principal.Actor.At(door), TokenHash: r.Principal.TokenHash, Recheck: r.Recheck}
}

// WithShortReads returns the request for a handler whose reads are many and short; see record.ShortReads.
func (r *Request) WithShortReads() *Request {
	out := *r
	out.Request = r.WithContext(record.ShortReads(r.Context()))
	return &out
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
	// Packed are the same Bytes compressed, by their content codings, such as br; nil for none.
	Packed   map[string][]byte
	Tag      string // ETag of Bytes, quoted; "" until they are sent or kept
	Volatile bool   // is different each time, so that a tag would be useless

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

// Env holds what handlers need from their process.
type Env struct {
	Log    *slog.Logger
	Redact func(text string) string // keeps the values of our own tokens out of what a handler renders
	// Hide keeps what looks like a secret of anybody out of what a refusal repeats of its request; nil: nothing does.
	Hide func(text string) string
	// Redaction returns a number that changes whenever Redact begins to remove something else; nil where it is not known.
	Redaction func() int64
	Now       func() time.Time
	NewID     func() string // request ids
}

// Settings is what the operator permits this server to do.
type Settings struct {
	Version string
	Tier    gitprovider.Tier
	Rules   func() Rules // as they are now
	// PublicURL is the address at which clients reach the server, base path included; "" if not configured.
	PublicURL string
}

// Rules holds the operator's rules for the whole server at one time.
type Rules struct {
	DryRun   bool
	ReadOnly string // why no proposals are taken, or ""
	Problem  string // why the rules cannot be known, or "": new sign-ins are refused then
}

// Bounds, in runes, of text that others wrote.
const (
	MaxLine      = 300
	MaxMessage   = 5000
	MaxAgentText = 64 << 10 // what is recorded of an agent's text is shorter
)

// Text prepares a text of others for display: without our tokens and invisible characters, and bounded.
func (e Env) Text(text string, runes int) string {
	out := textscan.Clean(e.Redact(text), runes)
	return out
}

// Line returns a line of such text.
func (e Env) Line(text string) string { return e.Text(text, MaxLine) }

// Message returns a message of such text.
func (e Env) Message(text string) string { return e.Text(text, MaxMessage) }

// CleanLine prepares a line of text of others for the record: only invisible characters are removed.
func CleanLine(text string) string {
	out := textscan.Clean(text, MaxLine)
	return out
}

// Problem is the body of every answer that is an error (RFC 9457), with the members that MCP has, too.
type Problem struct {
	Type              string            `json:"type" doc:"Always about:blank; code says what it is"`
	Title             string            `json:"title" doc:"The status in words"`
	Status            int               `json:"status"`
	Detail            string            `json:"detail" doc:"What happened and what to do"`
	Code              fault.Code        `json:"code" doc:"See docs/reference/codes.md"`
	Retryable         bool              `json:"retryable" doc:"The very same call may succeed later"`
	RetryAfterSeconds int               `json:"retry_after_seconds,omitempty"`
	Violations        []fault.Violation `json:"violations,omitempty" doc:"Every broken rule"`
	ExistingPR        *fault.ExistingPR `json:"existing_pr,omitempty"`
	Next              string            `json:"next,omitempty" doc:"What the caller does next"`
	RequestID         string            `json:"request_id" doc:"Of the attempt in the audit, else of this exchange in the log"`
	Failure           any               `json:"failure,omitempty" doc:"Of tools with a contract of their own: the error as that has it"`
	Recorded          string            `json:"-"` // path of the page with what the records know, without the base
}

// FormedError is an error of a tool whose contract has a form of its own for errors.
type FormedError struct {
	Err     error
	Failure any // the error in that form
}

func (e *FormedError) Error() string { return e.Err.Error() }
func (e *FormedError) Unwrap() error { return e.Err }

// RecordedError is an error about something of which the records know more.
type RecordedError struct {
	Err  error
	Path string // of the page that shows it, without the base
}

func (e *RecordedError) Error() string { return e.Err.Error() }
func (e *RecordedError) Unwrap() error { return e.Err }

// StatusError is an error whose status HTTP knows better than its code does, such as 405.
type StatusError struct {
	Status int
	Header http.Header
	Err    *fault.Error
}

func (e *StatusError) Error() string { return e.Err.Error() }
func (e *StatusError) Unwrap() error { return e.Err }

// Unavailable returns an error with the status 503.
func Unavailable(err *fault.Error) error {
	return &StatusError{Status: http.StatusServiceUnavailable, Err: err}
}

// Invalid returns an error that lists the violations; nil if there is none.
func Invalid(violations []fault.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.InvalidArgument, Message: violations[0].Message, Violations: violations}
}

// Cause returns an error with what is behind it, for the log.
func Cause(err error) string {
	e := fault.From(err)
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Cause)
}

// EncodeJSON is JSON as all our answers have it: no escapes for HTML, but for whatever hides or acts on a terminal, and
// no line break at its end.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // our types always encode
		return []byte("{}")
	}
	return textscan.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// NothingHere returns the error about an address that leads nowhere. base is the path below which the server is.
func NothingHere(base string) error {
	return fault.New(fault.NotFound, "there is nothing at this address; %s/openapi.json lists what there is", base)
}
