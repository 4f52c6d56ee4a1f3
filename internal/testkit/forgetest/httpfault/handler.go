package httpfault

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Handler records requests and passes them to the next handler, unless a fault is planned. It is safe for concurrent
// use.
type Handler struct {
	next http.Handler

	mu      sync.Mutex
	latency time.Duration
	plans   []*plan
	seen    []*Seen
	late    []*http.Request // that Late and LateStall have kept
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

// Stalls reports whether a fault is planned that keeps its client waiting.
func (h *Handler) Stalls() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.plans, func(p *plan) bool {
		return p.fault.Kind == Stall || p.fault.Kind == StallAfter || p.fault.Kind == LateStall
	})
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
