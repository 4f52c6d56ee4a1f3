package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// answer is what a handler gives back. Without a body of bytes, value is encoded as JSON.
type answer struct {
	status int // 0: 200
	value  any
	header http.Header

	bytes       []byte
	contentType string // of bytes
	volatile    bool   // is different each time, so that a tag would be of no use

	// stream writes a body of the contentType whose length nobody knows. If it fails, the connection is cut.
	stream func(w io.Writer) error
}

// encode is JSON as all our answers have it: no escapes for HTML, no line break at its end.
func encode(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // our types always encode
		return []byte("{}")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// write sends an answer, or 304 to a caller that has it already.
func (s *Server) write(w http.ResponseWriter, c *call, a answer) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.stream != nil {
		s.stream(w, c, a)
		return
	}
	if a.bytes == nil && a.value != nil {
		a.bytes, a.contentType = encode(a.value), "application/json"
	}
	readable := c.Method == http.MethodGet || c.Method == http.MethodHead
	if readable && a.status == http.StatusOK && !a.volatile {
		sum := sha256.Sum256(a.bytes)
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
		w.Header().Set("ETag", tag)
		if matches(c.Header.Values("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.send(w, c, a.status, a.contentType, a.bytes)
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

func (s *Server) send(w http.ResponseWriter, c *call, status int, contentType string, body []byte) {
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	if status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if c.Method == http.MethodHead || len(body) == 0 {
		return
	}
	if _, err := w.Write(body); err != nil {
		s.Log.Debug("answer not sent", "request_id", c.id, "error", err)
	}
}

func (s *Server) stream(w http.ResponseWriter, c *call, a answer) {
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.status)
	if c.Method == http.MethodHead {
		return
	}
	if err := a.stream(w); err != nil {
		s.Log.Warn("answer broken off", "request_id", c.id, "error", s.Redact(cause(fault.From(err))))
		panic(http.ErrAbortHandler)
	}
}
