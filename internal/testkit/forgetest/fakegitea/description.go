package fakegitea

import (
	"io"
	"net/http"
)

// describe answers with a part of the API's description, which many servers do not have.
func (s *Server) describe(w http.ResponseWriter) {
	has := false
	s.host.Locked(func() { has = s.schema })
	if !has {
		http.Error(w, "Not found.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	_, _ = io.WriteString(w,
		`{"swagger":"2.0","definitions":{"PullRequest":{"properties":{"review_comments":{"type":"integer"}}}}}`)
}
