package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/web/handler"
)

// write sends an answer, or 304 to a caller that has it already.
func (s *Server) write(w http.ResponseWriter, req *handler.Request, a handler.Response) {
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
		a.Bytes, a.ContentType = handler.EncodeJSON(a.Value), "application/json"
	}
	readable := req.Method == http.MethodGet || req.Method == http.MethodHead
	if readable && a.Status == http.StatusOK && !a.Volatile {
		sum := sha256.Sum256(a.Bytes)
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
		w.Header().Set("ETag", tag)
		if matches(req.Header.Values("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.send(w, req, a.Status, a.ContentType, a.Bytes)
}

// matches compares weakly, as If-None-Match asks for (RFC 9110, 13.1.2).
func matches(given []string, tag string) bool {
	for _, one := range strings.Split(strings.Join(given, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

func (s *Server) send(w http.ResponseWriter, req *handler.Request, status int, contentType string, body []byte) {
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

func (s *Server) stream(w http.ResponseWriter, req *handler.Request, a handler.Response) {
	w.Header().Set("Content-Type", a.ContentType)
	w.WriteHeader(a.Status)
	if req.Method == http.MethodHead {
		return
	}
	if err := a.Stream(w); err != nil {
		s.env.Log.Warn("answer broken off", "request_id", req.ID, "error", s.env.Redact(handler.Cause(err)))
		panic(http.ErrAbortHandler)
	}
}
