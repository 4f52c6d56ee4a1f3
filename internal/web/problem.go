package web

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// Problem is the body of every answer that is an error (RFC 9457), with the members that MCP has, too.
type Problem struct {
	Type              string            `json:"type" doc:"Always about:blank; code says what it is"`
	Title             string            `json:"title" doc:"The status in words"`
	Status            int               `json:"status"`
	Detail            string            `json:"detail" doc:"What happened and what to do"`
	Code              fault.Code        `json:"code" doc:"See docs/codes.md"`
	Retryable         bool              `json:"retryable" doc:"The very same call may succeed later"`
	RetryAfterSeconds int               `json:"retry_after_seconds,omitempty"`
	Violations        []fault.Violation `json:"violations,omitempty" doc:"Every broken rule"`
	ExistingPR        *fault.ExistingPR `json:"existing_pr,omitempty"`
	RequestID         string            `json:"request_id" doc:"Of the attempt in the audit, else of this exchange in the log"`
}

// statusError is an error whose status HTTP knows better than its code does, such as 405.
type statusError struct {
	status int
	header http.Header
	err    *fault.Error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// problem is the one place where an error meets HTTP.
func (s *Server) problem(w http.ResponseWriter, c *call, err error) {
	e := fault.From(err)
	id := operation.RequestIDOf(err)
	if id == "" {
		id = c.id
		s.Log.Info("refused", "request_id", id, "code", e.Code, "error", s.Redact(cause(e)))
	}
	wire := e.Wire(id)
	p := Problem{
		Type: "about:blank", Status: e.Code.HTTPStatus(), Detail: s.Redact(wire.Message), Code: wire.Code,
		Retryable: wire.Retryable, RetryAfterSeconds: wire.RetryAfterSeconds, Violations: s.redacted(wire.Violations),
		ExistingPR: wire.ExistingPR, RequestID: id,
	}
	var special *statusError
	if errors.As(err, &special) {
		p.Status = special.status
		maps.Copy(w.Header(), special.header)
	}
	p.Title = http.StatusText(p.Status)
	if p.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	if p.Code == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="claudeops"`)
	}
	w.Header().Add("Vary", "Accept")
	if !prefersHTML(c.Request) {
		s.send(w, c, p.Status, "application/problem+json", encode(p))
		return
	}
	if at := s.signInFirst(c, p); at != "" {
		w.Header().Set("Location", at)
		s.send(w, c, http.StatusSeeOther, "", nil)
		return
	}
	s.send(w, c, p.Status, "text/html; charset=utf-8", s.problemPage(c, p, operation.AttemptIDOf(err) != ""))
}

// redacted keeps what a caller has submitted from carrying our own tokens back.
func (s *Server) redacted(violations []fault.Violation) (out []fault.Violation) {
	for _, v := range violations {
		v.Path, v.Message, v.Suggestion = s.Redact(v.Path), s.Redact(v.Message), s.Redact(v.Suggestion)
		out = append(out, v)
	}
	return out
}

// cause is an error with what is behind it, for the log.
func cause(e *fault.Error) string {
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Cause)
}
