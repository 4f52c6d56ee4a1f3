package live

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// Path is the address of the stream, below the base path.
const Path = "/events"

// Names of topics.
const (
	TopicAudit    = "audit"    // the record: every attempt, review and settlement adds a row
	TopicSessions = "sessions" // the sessions of agents: that one begins, says something or ends
	// TopicConnections is the agents that are connected: that one connects, calls a tool, is cut off or goes.
	TopicConnections = "connections"
	TopicHealth      = "health" // how the server is, its forges included
)

type eventParams struct {
	After string `json:"after,omitempty"` // position of the page, as long as there is no Last-Event-ID
}

// Events tells a page what has changed, for as long as it listens: server-sent events with the topic and its version.
func (h *Hub) Events(req *httpx.Request) (httpx.Response, error) {
	var q eventParams
	if err := httpx.DecodeQuery(req, &q); err != nil {
		return httpx.Response{}, err
	}
	a := httpx.Response{ContentType: "text/event-stream", Header: http.Header{"X-Accel-Buffering": {"no"}}}
	a.Stream = func(io.Writer) error { return nil }
	if req.Method == http.MethodHead {
		return a, nil
	}
	after := parsePosition(q.After)
	if last := req.Header.Get("Last-Event-ID"); last != "" {
		after = parsePosition(last)
	}
	joined, err := h.join(h.listener(req))
	if err != nil {
		return httpx.Response{}, err
	}
	if err := h.waitReady(req.Context(), joined); err != nil {
		h.removeStream(joined)
		return httpx.Response{}, err
	}
	a.Stream = func(w io.Writer) error {
		defer h.removeStream(joined)
		f := follower{hub: h, request: req, stream: joined, known: after, out: w}
		if out, ok := w.(http.ResponseWriter); ok {
			f.control = http.NewResponseController(out)
		}
		err := f.follow()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // the listener has gone
		}
		return err
	}
	return a, nil
}

// listener identifies who a stream counts for: a token or a person and, for anonymous callers, an address.
func (h *Hub) listener(req *httpx.Request) string {
	switch req.Principal.Via {
	case access.ViaAnonymous:
		return h.guard.Client(req.Request).String()
	}
	return httpx.Key(req.Principal.Actor)
}

// follower writes one stream.
type follower struct {
	hub     *Hub
	request *httpx.Request
	stream  *stream
	known   position // what the client knows; nil for nothing in particular
	control *http.ResponseController
	out     io.Writer
}

// retry is how long a client waits before it connects again.
const retry = 3 * time.Second

// follow writes until the client is gone or takes too long, its caller is no longer admitted, or the server ends.
func (f *follower) follow() error {
	// The deadline of the whole request, headers included, would end the stream; each write has its own.
	if f.control == nil || f.control.SetReadDeadline(time.Time{}) != nil {
		return http.ErrNotSupported
	}
	limits := f.hub.limits
	beat, recheck := time.NewTicker(limits.Heartbeat), time.NewTicker(limits.Recheck)
	defer beat.Stop()
	defer recheck.Stop()
	err := f.write(fmt.Sprintf("retry: %d\n\n", retry.Milliseconds()))
	for err == nil {
		if err = f.sendChanges(); err != nil {
			break
		}
		select {
		case <-f.stream.changed:
		case <-beat.C:
			err = f.write(": still here\n\n")
		case <-recheck.C:
			if !f.mayStillRead() {
				return nil
			}
		case <-f.request.Context().Done():
			return nil
		case <-f.hub.ended:
			return nil
		case <-f.stream.dropped:
			return nil
		}
	}
	return err
}

// sendChanges writes an event for each topic that has changed since the last event to the client.
func (f *follower) sendChanges() error {
	at := f.hub.now()
	if at == nil {
		return nil
	}
	var b strings.Builder
	changed := at.since(f.known)
	if f.known == nil { // it begins here: an id alone is not an event
		changed = nil
		fmt.Fprintf(&b, "id: %s\n\n", at)
	}
	for _, m := range changed {
		data := httpx.EncodeJSON(map[string]any{"topic": m.topic, "version": m.version})
		fmt.Fprintf(&b, "event: change\nid: %s\ndata: %s\n\n", at, data)
	}
	f.known = at
	if b.Len() == 0 {
		return nil
	}
	return f.write(b.String())
}

// mayStillRead recognises the caller again: tokens are revoked, sessions end.
func (f *follower) mayStillRead() bool {
	who, err := f.hub.guard.Identify(f.request)
	return err == nil && who.Scopes.Has(access.Read)
}

// write sends text at once. The deadline is the network's, so it is of the real clock.
func (f *follower) write(text string) error {
	if err := f.control.SetWriteDeadline(time.Now().Add(f.hub.limits.Write)); err != nil {
		return err
	}
	if _, err := io.WriteString(f.out, text); err != nil {
		return err
	}
	return f.control.Flush()
}
