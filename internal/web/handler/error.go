package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
)

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
	return content.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// NothingHere returns the error about an address that leads nowhere. base is the path below which the server is.
func NothingHere(base string) error {
	return fault.New(fault.NotFound, "there is nothing at this address; %s/openapi.json lists what there is", base)
}
