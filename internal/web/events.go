package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
)

const eventsPath = "/events"

// topicAudit is the record: every attempt, review and settlement adds a row.
const topicAudit = "audit"

// TopicSessions is the topic of the sessions of agents: that one begins, says something or ends.
const TopicSessions = "sessions"

// newEvents makes the hub of a server and the gauge that counts its streams.
func newEvents(s *Server) *hub {
	topics := append([]Topic{{Name: topicAudit, Version: s.Audit.Head}}, s.Topics...)
	h := newHub(topics, s.Live, func(err error) {
		s.Log.Warn("changes not looked for", "error", s.Redact(cause(fault.From(err))))
	})
	s.metrics.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "claudeops_event_streams", Help: "Pages that listen for changes.",
	}, func() float64 { return float64(h.count()) }))
	return h
}

type eventParams struct {
	After string `query:"after"` // position of the page, as long as there is no Last-Event-ID
}

// events tells a page what has changed, for as long as it listens: server-sent events with the topic and its version.
func (s *Server) events(c *call) (answer, error) {
	var q eventParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	a := answer{contentType: "text/event-stream", header: http.Header{"X-Accel-Buffering": {"no"}}}
	a.stream = func(io.Writer) error { return nil }
	if c.Method == http.MethodHead {
		return a, nil
	}
	after := parsePosition(q.After)
	if last := c.Header.Get("Last-Event-ID"); last != "" {
		after = parsePosition(last)
	}
	joined, err := s.hub.join(s.listener(c))
	if err != nil {
		return answer{}, err
	}
	if err := s.hub.ready(c.Context(), joined); err != nil {
		s.hub.leave(joined)
		return answer{}, err
	}
	a.stream = func(w io.Writer) error {
		defer s.hub.leave(joined)
		f := follower{Server: s, call: c, stream: joined, told: after, out: w}
		if out, ok := w.(http.ResponseWriter); ok {
			f.control = http.NewResponseController(out)
		}
		err := f.follow()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // whoever listened has gone
		}
		return err
	}
	return a, nil
}

// listener is whom a stream counts for: a token or a person, and where nobody signs in, an address.
func (s *Server) listener(c *call) string {
	switch c.who.Via {
	case access.ViaAnonymous:
		return s.Network.client(c.Request).String()
	case access.ViaProxy:
		return "user " + c.who.Name
	}
	return "token " + c.who.TokenHash
}

// follower writes one stream.
type follower struct {
	*Server
	call    *call
	stream  *stream
	told    position // what the client knows; nil for nothing in particular
	control *http.ResponseController
	out     io.Writer
}

// retry is how long a client waits before it connects again.
const retry = 3 * time.Second

// follow writes until the client is gone or takes too long, its caller is no longer let in, or the server ends.
func (f *follower) follow() error {
	// The deadline of the whole request, headers included, would end the stream; each write has its own.
	if f.control == nil || f.control.SetReadDeadline(time.Time{}) != nil {
		return http.ErrNotSupported
	}
	limits := f.hub.limits
	beat, recheck := time.NewTicker(limits.Beat), time.NewTicker(limits.Recheck)
	defer beat.Stop()
	defer recheck.Stop()
	err := f.write(fmt.Sprintf("retry: %d\n\n", retry.Milliseconds()))
	for err == nil {
		if err = f.news(); err != nil {
			break
		}
		select {
		case <-f.stream.changed:
		case <-beat.C:
			err = f.write(": still here\n\n")
		case <-recheck.C:
			if !f.stillLetIn() {
				return nil
			}
		case <-f.call.Context().Done():
			return nil
		case <-f.hub.ended:
			return nil
		case <-f.stream.dropped:
			return nil
		}
	}
	return err
}

// news writes an event for each topic that has changed since the client was told last.
func (f *follower) news() error {
	at := f.hub.now()
	if at == nil {
		return nil
	}
	var b strings.Builder
	changed := at.since(f.told)
	if f.told == nil { // it begins here: an id alone is no event
		changed = nil
		fmt.Fprintf(&b, "id: %s\n\n", at)
	}
	for _, m := range changed {
		data := encode(map[string]any{"topic": m.topic, "version": m.version})
		fmt.Fprintf(&b, "event: change\nid: %s\ndata: %s\n\n", at, data)
	}
	f.told = at
	if b.Len() == 0 {
		return nil
	}
	return f.write(b.String())
}

// stillLetIn recognises the caller again: tokens are revoked, sessions end.
func (f *follower) stillLetIn() bool {
	who, err := f.identify(f.call)
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
