package web

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// problem is the one place where an error meets HTTP.
func (s *Server) problem(w http.ResponseWriter, req *handler.Request, err error) {
	e := fault.From(err)
	id := operation.RequestIDOf(err)
	if id == "" {
		id = req.ID
		s.env.Log.Info("refused", "request_id", id, "code", e.Code, "error", s.hidden(handler.Cause(e)))
	}
	wire := e.Wire(id)
	p := handler.Problem{
		Type: "about:blank", Status: e.Code.HTTPStatus(), Detail: s.hidden(wire.Message), Code: wire.Code,
		Retryable: wire.Retryable, RetryAfterSeconds: wire.RetryAfterSeconds, Violations: s.redacted(wire.Violations),
		ExistingPR: wire.ExistingPR, Next: s.env.Redact(wire.Next), RequestID: id,
	}
	var special *handler.StatusError
	if errors.As(err, &special) {
		p.Status = special.Status
		maps.Copy(w.Header(), special.Header)
	}
	var formed *handler.FormedError
	if errors.As(err, &formed) {
		p.Failure = formed.Failure
	}
	var recorded *handler.RecordedError
	if errors.As(err, &recorded) {
		p.Recorded = recorded.Path
	}
	p.Title = http.StatusText(p.Status)
	if p.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	if p.Code == fault.Unauthenticated && w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="claudeops"`)
	}
	w.Header().Add("Vary", "Accept")
	if !handler.PrefersHTML(req.Request) {
		s.send(w, req, p.Status, "application/problem+json", handler.EncodeJSON(p))
		return
	}
	if at := s.signInFirst(req, p); at != "" {
		w.Header().Set("Location", at)
		s.send(w, req, http.StatusSeeOther, "", nil)
		return
	}
	s.send(w, req, p.Status, "text/html; charset=utf-8", s.dashboard.Problem(req, p, operation.AttemptIDOf(err) != ""))
}

// hidden keeps secrets out of a text that repeats what a caller has submitted.
func (s *Server) hidden(text string) string {
	if text = s.env.Redact(text); s.env.Hide != nil {
		text = s.env.Hide(text)
	}
	return text
}

// redacted keeps what a caller has submitted from carrying our own tokens back.
func (s *Server) redacted(violations []fault.Violation) (out []fault.Violation) {
	for _, v := range violations {
		out = append(out, v.Map(s.hidden))
	}
	return out
}

// signInFirst is where a person goes who asked for a page and has to sign in first; "" for everybody else.
func (s *Server) signInFirst(req *handler.Request, p handler.Problem) string {
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead
	// of a part of a page, where another page would be of no use
	refresh := req.Header.Get("HX-Request") != ""
	back := strings.HasPrefix(req.Pattern, "GET "+guard.SignInPath+"/") // from a provider, with an answer of its own
	if !req.Page || !reads || refresh || back || p.Code != fault.Unauthenticated {
		return ""
	}
	next := req.URL.EscapedPath()
	if req.URL.RawQuery != "" {
		next += "?" + req.URL.RawQuery
	}
	return s.guard.BasePath + guard.SignInPath + "?next=" + url.QueryEscape(guard.SafeNext(next))
}
