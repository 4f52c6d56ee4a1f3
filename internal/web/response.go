package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// writeResponse sends an answer, or 304 to a caller that has it already.
func (s *Server) writeResponse(w http.ResponseWriter, req *httpx.Request, a *httpx.Response) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Stream != nil {
		s.stream(w, req, a)
		return
	}
	if a.Bytes == nil && a.Value != nil {
		a.Bytes, a.ContentType = httpx.EncodeJSON(a.Value), "application/json"
	}
	readable := req.Method == http.MethodGet || req.Method == http.MethodHead
	if readable && a.Status == http.StatusOK && !a.Volatile {
		if a.Tag == "" {
			a.Tag = tagOf(a.Bytes)
		}
		w.Header().Set("ETag", a.Tag)
		if etagMatches(req.Header.Values("If-None-Match"), a.Tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if readable {
		a.Bytes = packed(w.Header(), req.Request, *a)
	}
	s.writeBody(w, req, a.Status, a.ContentType, a.Bytes)
}

// tagOf returns the ETag of an answer's bytes.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// etagMatches compares weakly, as If-None-Match asks for (RFC 9110, 13.1.2).
func etagMatches(given []string, tag string) bool {
	for _, one := range strings.Split(strings.Join(given, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

func (s *Server) writeBody(w http.ResponseWriter, req *httpx.Request, status int, contentType string, body []byte) {
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	if status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if req.Method == http.MethodHead || len(body) == 0 {
		return
	}
	if _, err := w.Write(body); err != nil {
		s.env.Log.Debug("answer not sent", "request_id", req.ID, "error", err)
	}
}

func (s *Server) stream(w http.ResponseWriter, req *httpx.Request, a *httpx.Response) {
	w.Header().Set("Content-Type", a.ContentType)
	w.WriteHeader(a.Status)
	if req.Method == http.MethodHead {
		return
	}
	if err := a.Stream(w); err != nil {
		s.env.Log.Warn("answer broken off", "request_id", req.ID, "error", s.env.Redact(httpx.Cause(err)))
		panic(http.ErrAbortHandler)
	}
}

// problem renders every error over HTTP.
func (s *Server) problem(w http.ResponseWriter, req *httpx.Request, err error) {
	e := fault.From(err)
	id := operation.RequestIDOf(err)
	if id == "" {
		id = req.ID
		s.env.Log.Info("refused", "request_id", id, "code", e.Code, "error", s.hidden(httpx.Cause(e)))
	}
	wire := e.Wire(id)
	p := httpx.Problem{
		Type: "about:blank", Status: e.Code.HTTPStatus(), Detail: s.hidden(wire.Message), Code: wire.Code,
		Retryable: wire.Retryable, RetryAfterSeconds: wire.RetryAfterSeconds, Violations: s.redacted(wire.Violations),
		ExistingPR: wire.ExistingPR, Next: s.env.Redact(wire.Next), RequestID: id,
	}
	var special *httpx.StatusError
	if errors.As(err, &special) {
		p.Status = special.Status
		maps.Copy(w.Header(), special.Header)
	}
	var formed *httpx.FormedError
	if errors.As(err, &formed) {
		p.Failure = formed.Failure
	}
	var recorded *httpx.RecordedError
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
	if !httpx.PrefersHTML(req.Request) {
		s.writeBody(w, req, p.Status, "application/problem+json", httpx.EncodeJSON(p))
		return
	}
	if at := s.signInFirst(req, p); at != "" {
		w.Header().Set("Location", at)
		s.writeBody(w, req, http.StatusSeeOther, "", nil)
		return
	}
	s.writeBody(w, req, p.Status, "text/html; charset=utf-8",
		s.dashboard.Problem(req, p, operation.AttemptIDOf(err) != ""))
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

// signInFirst returns the page to which a person without a sign-in is sent; "" for everybody else.
func (s *Server) signInFirst(req *httpx.Request, p httpx.Problem) string {
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead
	// of a part of a page, where another page would be useless
	refresh := req.Header.Get("HX-Request") != ""
	back := strings.HasPrefix(req.Pattern, "GET "+httpx.SignInPath+"/") // from a provider, with an answer of its own
	if !req.Page || !reads || refresh || back || p.Code != fault.Unauthenticated {
		return ""
	}
	next := req.URL.EscapedPath()
	if req.URL.RawQuery != "" {
		next += "?" + req.URL.RawQuery
	}
	return s.guard.BasePath + httpx.SignInPath + "?next=" + url.QueryEscape(httpx.SafeNext(next))
}

const (
	// keptFor is the maximum age of a cached answer: times in words may be that old, and so may everything else that is
	// not in the records.
	keptFor = 10 * time.Second
	// maxKept bounds the answers that are kept, and maxKeptBytes their bytes. Beyond it, all are dropped.
	maxKept, maxKeptBytes = 64, 8 << 20
)

// kept keeps answers that are made of the records alone, as long as nothing was recorded since. It is asked behind the
// guard, and keeps answers for each caller apart.
type kept struct {
	changes views.Changes // nil where nothing is kept
	health  *health.Checker
	env     httpx.Env

	mu      sync.Mutex
	answers map[keptKey]httpx.Response
	bytes   int
}

// keptKey is all that an answer depends on.
type keptKey struct {
	version  string // of the records
	slice    int64  // of the time
	verified time.Time
	health   int64 // version of how the server is
	redacted int64 // what is kept out of it; see handler.Env
	pattern  string
	query    string
	caller   string
}

// keeps reports whether the answers of a route may be kept: they are made of records, rules and time, and of who asks.
func keeps(route *httpx.Route) bool {
	switch route.Method + " " + route.Pattern {
	case "GET /{$}", "GET /changes", "GET /api/v1/proposals":
		return true
	}
	return false
}

// answerCached returns the handler's answer, from the cache if nothing has changed since.
func (k *kept) answerCached(req *httpx.Request, handle httpx.Func) (httpx.Response, error) {
	key, known := k.cacheKey(req.Context(), req)
	if !known {
		return k.cachedAnswer(req, handle)
	}
	k.mu.Lock()
	answer, found := k.answers[key]
	k.mu.Unlock()
	if found {
		return answer, nil
	}
	answer, err := k.cachedAnswer(req, handle)
	if err != nil || answer.Stream != nil || answer.Status > 200 {
		return answer, err
	}
	if answer.Bytes == nil && answer.Value != nil {
		answer.Bytes, answer.ContentType = httpx.EncodeJSON(answer.Value), "application/json"
	}
	answer.Packed = packPage(answer)
	if !answer.Volatile {
		answer.Tag = tagOf(answer.Bytes)
	}
	k.storeAnswer(key, answer)
	return answer, nil
}

// cachedAnswer returns the handler's answer from the present records. The health is read first: doctor writes to the
// records, which a call that holds a view of them cannot do.
func (k *kept) cachedAnswer(req *httpx.Request, handle httpx.Func) (answer httpx.Response, err error) {
	if k.changes == nil {
		return handle(req)
	}
	k.health.Now(req.Context())
	err = k.changes.View(req.Context(), func(ctx context.Context) error {
		viewing := *req
		viewing.Request = req.WithContext(ctx)
		answer, err = handle(&viewing)
		return err
	})
	return answer, err
}

// cacheKey is computed before the answer is made, so that records made meanwhile invalidate it.
func (k *kept) cacheKey(ctx context.Context, req *httpx.Request) (keptKey, bool) {
	if k.changes == nil {
		return keptKey{}, false
	}
	version, known := k.changes.Version(ctx)
	state, err := k.health.Version(ctx)
	redacted := int64(0)
	if k.env.Redaction != nil {
		redacted = k.env.Redaction()
	}
	return keptKey{
		version: version, slice: k.env.Now().UnixNano() / int64(keptFor), verified: k.health.LastVerification().At,
		health: state, redacted: redacted,
		pattern: req.Pattern, query: req.URL.RawQuery,
		caller: fmt.Sprintf("%+v", req.Principal),
	}, known && err == nil
}

func (k *kept) storeAnswer(key keptKey, answer httpx.Response) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := len(answer.Bytes) + len(answer.Packed["gzip"])
	if size > maxKeptBytes/8 {
		return
	}
	if k.answers == nil || len(k.answers) >= maxKept || k.bytes+size > maxKeptBytes {
		k.answers, k.bytes = map[keptKey]httpx.Response{}, 0
	}
	if _, has := k.answers[key]; !has {
		k.bytes += size
	}
	k.answers[key] = answer
}
