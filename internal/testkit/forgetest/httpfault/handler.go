// Package httpfault makes an http.Handler misbehave as networks and servers do, and records what it was asked.
//
// It stands in front of a fake server in tests of clients. It causes failures that a client can meet: connections that
// break before or after the server acted, answers that stop half-way, gateways that answer for a server that has acted.
package httpfault

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// NoListener is the address of a server that refuses connections. The port of a server that was closed would not do:
// another test may listen there by now, while nobody is given port 1 who does not ask for it.
const NoListener = "http://127.0.0.1:1"

// Kind is one way to misbehave.
type Kind string

// The kinds. "next" is the handler behind; where it is called, it acts in full and its answer is withheld.
const (
	ResetBefore     Kind = "reset_before"      // the connection is reset, next is not called
	ResetAfter      Kind = "reset_after"       // next acts, then the connection is reset without an answer
	BadGatewayAfter Kind = "bad_gateway_after" // next acts, the answer is 502 with an HTML page
	Stall           Kind = "stall"             // no answer until the client goes away, next is not called
	StallAfter      Kind = "stall_after"       // next acts, then no answer until the client goes away
	Truncated       Kind = "truncated"         // next's answer with its full length announced, half of it sent, then cut
	Oversized       Kind = "oversized"         // 200 and JSON that goes on until the client stops, or 1 GiB
	Late            Kind = "late"              // the connection is reset; next acts when Handler.ActLate is called
	// no answer until the client goes away; next acts when Handler.ActLate is called
	LateStall Kind = "late_stall"
	LateFirst Kind = "late_first" // what Late and LateStall have kept acts, then next answers as ever
	HTML      Kind = "html"       // 200 and an HTML page, next is not called
	Status    Kind = "status"     // Fault.Status with Fault.Header and Fault.Body, next is not called
	Redirect  Kind = "redirect"   // Fault.Status (302 if zero) to Fault.Target and the same path and query
)

// Fault is one misbehaviour. Fields that a Kind does not name are ignored by it, except Header, which is added to every
// answer that a Kind makes itself.
type Fault struct {
	Kind   Kind
	Status int         // Status: the answer's status, 500 if zero. Redirect: 302 if zero
	Header http.Header // added to the answer
	Body   string      // Status, HTML: the answer's body; HTML has a page of its own if empty
	Target string      // Redirect: scheme and host, perhaps with a path to stand before the request's path
}

// Seen is a request as it arrived.
type Seen struct {
	Method string
	Path   string // escaped, no query
	Query  string // raw
	Header http.Header
	Body   []byte
	Status int // of the answer; 0 while there is none, and when the connection was or will be cut
}

// Handler records requests and passes them to the next handler, unless a fault is planned. It is safe for concurrent
// use.
type Handler struct {
	next http.Handler

	mu      sync.Mutex
	latency time.Duration
	plans   []*plan
	seen    []*Seen
	late    []*http.Request // that Late and LateStall have kept

	onStall    map[int]func() // by the number of their registration
	registered int
}

// plan is a fault and when it is due.
type plan struct {
	match    func(*http.Request) bool // nil: any
	nth      int                      // due at the n-th request that matches; 0: at the first
	repeated bool                     // due at every later one too
	count    int                      // matching requests since the plan was made
	fault    Fault
}

// New puts a Handler before next.
func New(next http.Handler) *Handler { return &Handler{next: next} }

// Plan lets the next request that matches meet f, once. A nil match is any request. match may read the request's body,
// may be called concurrently with nothing else of h, and must not call h.
//
// A request meets one fault at most: that of the plan made first. Plans that lose stay, PlanNth's excepted.
func (h *Handler) Plan(match func(*http.Request) bool, f Fault) {
	h.add(&plan{match: match, repeated: true, fault: f})
}

// PlanNth lets the n-th request from now on, counted from 1, meet f.
func (h *Handler) PlanNth(n int, f Fault) { h.add(&plan{nth: n, fault: f}) }

// PlanFrom lets the n-th request from now on, counted from 1, and every later one meet f.
func (h *Handler) PlanFrom(n int, f Fault) { h.add(&plan{nth: n, repeated: true, fault: f}) }

func (h *Handler) add(p *plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plans = append(h.plans, p)
}

// OnStall has f called whenever a request stalls, until the returned function is called. A client that gives up then
// does so as after a time-out, and need not wait for it.
func (h *Handler) OnStall(f func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.onStall == nil {
		h.onStall = map[int]func(){}
	}
	h.registered++
	id := h.registered
	h.onStall[id] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.onStall, id)
	}
}

// stall keeps a client waiting until it goes away.
func (h *Handler) stall(r *http.Request) {
	h.mu.Lock()
	waiting := slices.Collect(maps.Values(h.onStall))
	h.mu.Unlock()
	for _, f := range waiting {
		f()
	}
	<-r.Context().Done()
}

// SetLatency adds d to every request from now on, before anything else happens to it.
func (h *Handler) SetLatency(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latency = d
}

// Requests returns the requests so far, in the order in which they had arrived in full; one that is still being
// answered is among them.
func (h *Handler) Requests() []Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Seen, 0, len(h.seen))
	for _, s := range h.seen {
		c := *s
		c.Header, c.Body = s.Header.Clone(), bytes.Clone(s.Body)
		all = append(all, c)
	}
	return all
}

// Forget drops the recorded requests and all plans. The latency stays.
func (h *Handler) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plans, h.seen = nil, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut(w) // the client went away before it had asked
		return
	}
	h.wait(r)
	fault, answered := h.arrive(r, body)
	rewind(r, body)
	if fault == nil {
		h.next.ServeHTTP(&watched{ResponseWriter: w, answered: answered}, r)
		answered(http.StatusOK) // for a handler that wrote nothing
		return
	}
	h.misbehave(w, r, *fault, answered)
}

// arrive records the request and finds the fault that is due, or nil. answered is to be called with the status of the
// answer before the client can see it; only the first call counts.
func (h *Handler) arrive(r *http.Request, body []byte) (due *Fault, answered func(int)) {
	s := &Seen{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, s)
	var spent *plan
	for _, p := range h.plans {
		rewind(r, body)
		if p.match != nil && !p.match(r) {
			continue
		}
		p.count++
		if due == nil && (p.count == p.nth || p.repeated && p.count > p.nth) {
			due = &p.fault
			if p.nth == 0 {
				spent = p
			}
		}
	}
	h.plans = slices.DeleteFunc(h.plans, func(p *plan) bool {
		return p == spent || !p.repeated && p.count >= p.nth
	})
	return due, func(status int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.Status == 0 {
			s.Status = status
		}
	}
}

// wait waits for the latency, cut short when the client goes away.
func (h *Handler) wait(r *http.Request) {
	h.mu.Lock()
	d := h.latency
	h.mu.Unlock()
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// rewind lets the body be read from its beginning.
func rewind(r *http.Request, body []byte) { r.Body = io.NopCloser(bytes.NewReader(body)) }

// watched tells the status of an answer before it is sent.
type watched struct {
	http.ResponseWriter
	answered func(int)
}

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if status >= http.StatusOK { // 1xx is not the answer yet
		w.answered(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(p []byte) (int, error) {
	w.answered(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *watched) Flush() {
	w.answered(http.StatusOK)
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap serves http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// keep holds a request back for ActLate.
func (h *Handler) keep(r *http.Request) {
	body, _ := io.ReadAll(r.Body) // in memory already
	kept := r.Clone(context.WithoutCancel(r.Context()))
	rewind(kept, body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late = append(h.late, kept)
}

// ActLate lets next act on the requests that were kept by Late and LateStall, in the order of their arrival. Their
// answers go nowhere. It returns how many there were.
func (h *Handler) ActLate() int {
	h.mu.Lock()
	late := h.late
	h.late = nil
	h.mu.Unlock()
	for _, r := range late {
		h.act(r)
	}
	return len(late)
}

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
		h.stall(r)
	case StallAfter:
		h.act(r)
		h.stall(r)
	case Late:
		h.keep(r)
		cut(w)
	case LateStall:
		h.keep(r)
		h.stall(r)
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
