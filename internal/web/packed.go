package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// zipper compresses into a buffer.
type zipper struct {
	*gzip.Writer
	out bytes.Buffer
}

// zippers are used again, since each has some hundred KB. Unlike a sync.Pool it keeps them when garbage is collected,
// which the next page would have to make up for.
//
//nolint:gochecknoglobals // a pool is there to be shared
var zippers = make(chan *zipper, 2)

func takeZipper() *zipper {
	select {
	case w := <-zippers:
		return w
	default:
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // which is a level that there is
		return &zipper{Writer: w}
	}
}

func giveBack(w *zipper) {
	select {
	case zippers <- w:
	default: // there are enough
	}
}

// packed returns the bytes of an answer in the form that its reader takes, and says in the header which one that is.
func packed(h http.Header, r *http.Request, a httpx.Response) []byte {
	if a.Packed == nil && !isPage(a) {
		return a.Bytes
	}
	h.Add("Vary", "Accept-Encoding")
	forms := a.Packed
	if forms == nil && takesEncoding(r, "gzip") {
		forms = packPage(a)
	}
	body, encoding := choosePacked(r, a.Bytes, forms)
	if encoding == "" {
		return body
	}
	h.Set("Content-Encoding", encoding)
	if tag := h.Get("ETag"); tag != "" {
		h.Set("ETag", "W/"+tag) // of the same in other bytes
	}
	return body
}

func isPage(a httpx.Response) bool { return strings.HasPrefix(a.ContentType, "text/html") }

// packPage returns the compressed form of a page; nil for other answers, and where it would save nothing. Other sites
// cannot learn anything from its length: their requests carry no cookie of ours.
func packPage(a httpx.Response) map[string][]byte {
	if !isPage(a) || len(a.Bytes) < pages.MinPacked {
		return nil
	}
	w := takeZipper()
	defer giveBack(w)
	w.out.Reset()
	w.Reset(&w.out)
	if _, err := w.Write(a.Bytes); err != nil { // a buffer takes everything
		return nil
	}
	if err := w.Close(); err != nil {
		return nil
	}
	return map[string][]byte{"gzip": bytes.Clone(w.out.Bytes())}
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
