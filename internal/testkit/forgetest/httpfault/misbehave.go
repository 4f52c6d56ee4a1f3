package httpfault

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// oversize is the size of an Oversized answer if the client never stops reading, in bytes.
const oversize = 1 << 30

// page is the page of a gateway or a login wall.
const page = "<!DOCTYPE html>\n<html><head><title>Sorry</title></head><body><h1>Something is wrong</h1></body></html>\n"

// misbehave does what f says. answered is called before the client can see a status.
func (h *Handler) misbehave(w http.ResponseWriter, r *http.Request, f Fault, answered func(int)) {
	reply := func(status int, contentType, body string) {
		maps.Copy(w.Header(), f.Header)
		if contentType != "" && w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", contentType)
		}
		answered(status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that went away is its own affair
	}
	switch f.Kind {
	case ResetBefore:
		cut(w)
	case ResetAfter:
		h.act(r)
		cut(w)
	case BadGatewayAfter:
		h.act(r)
		reply(http.StatusBadGateway, "text/html; charset=utf-8", page)
	case Stall:
		<-r.Context().Done()
	case StallAfter:
		h.act(r)
		<-r.Context().Done()
	case Late:
		h.keep(r)
		cut(w)
	case LateStall:
		h.keep(r)
		<-r.Context().Done()
	case LateFirst:
		body, _ := io.ReadAll(r.Body) // in memory already
		h.ActLate()
		rewind(r, body)
		h.next.ServeHTTP(&watched{ResponseWriter: w, answered: answered}, r)
		answered(http.StatusOK)
	case Truncated:
		truncate(w, h.act(r))
	case Oversized:
		reply(http.StatusOK, "application/json", `{"padding":"`)
		pad(w)
	case HTML:
		reply(http.StatusOK, "text/html; charset=utf-8", cmp.Or(f.Body, page))
	case Status:
		reply(cmp.Or(f.Status, http.StatusInternalServerError), typeOf(f.Body), f.Body)
	case Redirect:
		w.Header().Set("Location", strings.TrimSuffix(f.Target, "/")+r.URL.RequestURI())
		reply(cmp.Or(f.Status, http.StatusFound), "", "")
	default:
		panic("httpfault: unknown kind " + strconv.Quote(string(f.Kind)))
	}
}

// act lets next do its work and keeps the answer back.
func (h *Handler) act(r *http.Request) *withheld {
	w := &withheld{header: http.Header{}, status: http.StatusOK}
	h.next.ServeHTTP(w, r)
	return w
}

// truncate sends the status, the headers and half of the body under the full length, and cuts the connection.
func truncate(w http.ResponseWriter, answer *withheld) {
	full := answer.body.Bytes()
	if len(full) == 0 {
		cut(w) // nothing to halve
		return
	}
	maps.Copy(w.Header(), answer.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(full)))
	w.WriteHeader(answer.status)
	_, _ = w.Write(full[:len(full)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler) // the server closes the connection after what was flushed
}

// pad writes until the client stops reading.
func pad(w io.Writer) {
	chunk := []byte(strings.Repeat("x", 64<<10))
	for sent := 0; sent < oversize; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// cut ends the connection without an answer: by a TCP reset where the connection can be had, as in HTTP/1, and else
// by what the protocol has for it.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn() // closing the outer one would say goodbye politely
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // reset instead of an orderly end
	}
	_ = raw.Close()
}

func typeOf(body string) string {
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// withheld takes an answer that the client does not get to see, or not all of it.
type withheld struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *withheld) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *withheld) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *withheld) Write(p []byte) (int, error) { return w.body.Write(p) }
