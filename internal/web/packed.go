package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// zippers are used again, since each has some hundred KB.
//
//nolint:gochecknoglobals // a pool is there to be shared
var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // which is a level that there is
	return w
}}

// packed returns the bytes of an answer in the form that its reader takes, and says in the header which one that is.
func packed(h http.Header, r *http.Request, a httpx.Response) []byte {
	isPage := strings.HasPrefix(a.ContentType, "text/html")
	if a.Packed == nil && !isPage {
		return a.Bytes
	}
	h.Add("Vary", "Accept-Encoding")
	var body []byte
	var encoding string
	if isPage {
		body, encoding = packPage(r, a.Bytes)
	} else {
		body, encoding = choosePacked(r, a.Bytes, a.Packed)
	}
	if encoding == "" {
		return body
	}
	h.Set("Content-Encoding", encoding)
	if tag := h.Get("ETag"); tag != "" {
		h.Set("ETag", "W/"+tag) // of the same in other bytes
	}
	return body
}

// packPage returns a page compressed, if its reader takes that, and what the encoding is called; body and "" otherwise.
// Other sites cannot learn anything from its length: their requests carry no cookie of ours.
func packPage(r *http.Request, body []byte) (packed []byte, encoding string) {
	if len(body) < pages.MinPacked || !takesEncoding(r, "gzip") {
		return body, ""
	}
	w, _ := zippers.Get().(*gzip.Writer)
	defer zippers.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(body); err != nil { // a buffer takes everything
		return body, ""
	}
	if err := w.Close(); err != nil {
		return body, ""
	}
	return out.Bytes(), "gzip"
}

// choosePacked returns the smallest form of a file that its reader takes, and what the encoding is called.
func choosePacked(r *http.Request, body []byte, forms map[string][]byte) (packed []byte, encoding string) {
	for _, name := range []string{"br", "gzip"} {
		if form := forms[name]; form != nil && takesEncoding(r, name) {
			return form, name
		}
	}
	return body, ""
}

// takesEncoding reports whether Accept-Encoding names an encoding, and not with the weight 0 (RFC 9110, 12.5.3).
func takesEncoding(r *http.Request, name string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, parameter, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), name) {
			continue
		}
		weight, is := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		value, err := strconv.ParseFloat(weight, 64)
		return !is || err == nil && value > 0
	}
	return false
}
