// Package live tells open pages by server-sent events that something has changed.
package live

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// Topic is something that pages show. Its version changes whenever it does; reading it must be cheap.
type Topic struct {
	Name    string // of letters, digits and hyphens
	Version func(ctx context.Context) (int64, error)
}

// Limits bounds the streams of changes. A field that is zero has its default.
type Limits struct {
	Poll      time.Duration // how often the versions are read while somebody listens; 1 s
	Heartbeat time.Duration // how long a stream says nothing; 15 s
	Recheck   time.Duration // how often a caller is recognised again; 2 s
	Write     time.Duration // how long a client may take for what it is sent; 10 s
	All       int           // streams at the same time; 256
	Each      int           // of one caller; 16
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&l.Poll, time.Second)
	set(&l.Heartbeat, 15*time.Second)
	set(&l.Recheck, 2*time.Second)
	set(&l.Write, 10*time.Second)
	if l.All == 0 {
		l.All = 256
	}
	if l.Each == 0 {
		l.Each = 16
	}
	return l
}

// Hub tells streams what has changed. It reads the versions for all of them together, and only while there is one.
type Hub struct {
	topics []Topic
	limits Limits
	guard  *httpx.Guard
	env    httpx.Env
	ended  chan struct{}

	mu      sync.Mutex
	closed  bool
	polling bool
	at      position // nil if it was not read since there are streams
	streams map[*stream]struct{}
	each    map[string]int
}

// stream is one listening client. changed holds a token if there may be something new; dropped is closed if it is not
// known what is new.
type stream struct {
	caller  string
	changed chan struct{}
	dropped chan struct{}
}

// Options configures a Hub.
type Options struct {
	Topics []Topic
	Limits Limits
	Guard  *httpx.Guard
	Env    httpx.Env
}

// New makes a Hub without listeners.
func New(o Options) *Hub {
	return &Hub{
		topics: o.Topics, limits: o.Limits.withDefaults(), guard: o.Guard, env: o.Env, ended: make(chan struct{}),
		streams: map[*stream]struct{}{}, each: map[string]int{},
	}
}

// maxWait limits how long a client that finds no place is asked to wait.
const maxWait = time.Minute

// join makes a stream for a caller, who has to leave it. limit_reached if there are too many, of the caller (429) or in
// all (503).
func (h *Hub) join(caller string) (*stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := fault.New(fault.LimitReached, "too many pages of this caller listen for changes; they are refreshed without")
	e.RetryAfter = maxWait
	switch {
	case h.closed:
		e.Message = "the server is ending"
		return nil, httpx.Unavailable(e)
	case len(h.streams) >= h.limits.All:
		e.Message = "too many pages listen for changes; they are refreshed without"
		return nil, httpx.Unavailable(e)
	case h.each[caller] >= h.limits.Each:
		return nil, e
	}
	s := &stream{caller: caller, changed: make(chan struct{}, 1), dropped: make(chan struct{})}
	h.streams[s] = struct{}{}
	h.each[caller]++
	if !h.polling {
		h.polling = true
		go h.poll()
	}
	return s, nil
}

// removeStream gives the place of a stream back.
func (h *Hub) removeStream(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
	if h.each[s.caller]--; h.each[s.caller] == 0 {
		delete(h.each, s.caller)
	}
}

// End ends every stream, and lets no new one in.
func (h *Hub) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.ended)
	}
}

// Count returns the number of streams.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams)
}

// now returns the position that was seen last, at most Limits.Poll ago; nil if it has to be waited for.
func (h *Hub) now() position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

// poll reads the versions until the last listener has gone. It ends only after a whole interval without reading, so
// that clients who come and go cannot make it read more often.
func (h *Hub) poll() {
	tick := time.NewTicker(h.limits.Poll)
	defer tick.Stop()
	for {
		at, err := h.readVersions(context.Background())
		if err == nil {
			h.publish(at)
		} else {
			h.warn(err)
			h.disconnect()
		}
		select {
		case <-tick.C:
		case <-h.ended:
		}
		if h.stopIfIdle() {
			return
		}
	}
}

// stopIfIdle reports whether polling is over, and notes it.
func (h *Hub) stopIfIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) > 0 && !h.closed {
		return false
	}
	h.polling, h.at = false, nil
	return true
}

// publish wakes the streams if at is news.
func (h *Hub) publish(at position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at != nil && len(at.since(h.at)) == 0 {
		return
	}
	h.at = at
	for s := range h.streams {
		select {
		case s.changed <- struct{}{}:
		default: // it knows already that there is something
		}
	}
}

// disconnect ends the streams, since they would be silent whatever happens.
func (h *Hub) disconnect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = nil
	for s := range h.streams {
		select {
		case <-s.dropped:
		default:
			close(s.dropped)
		}
	}
}

// waitReady waits until it is known where everything stands. An error says that the stream would tell nothing.
func (h *Hub) waitReady(ctx context.Context, s *stream) error {
	if h.now() != nil {
		return nil
	}
	select {
	case <-s.changed:
		return nil
	case <-s.dropped:
	case <-h.ended:
	case <-ctx.Done():
		return fault.From(ctx.Err())
	}
	return httpx.Unavailable(fault.New(fault.Internal, "nobody can tell what changes; the log says why"))
}

// pollTimeout bounds one reading of all versions.
const pollTimeout = 5 * time.Second

// Position returns the present versions, for the page that will listen later; "" if they cannot be read.
func (h *Hub) Position(ctx context.Context) string {
	at, err := h.topicVersions(ctx)
	if err != nil {
		h.warn(err)
		return ""
	}
	return at.String()
}

func (h *Hub) warn(err error) {
	h.env.Log.Warn("changes not looked for", "error", h.env.Redact(httpx.Cause(err)))
}

// readVersions reads the versions now.
func (h *Hub) readVersions(ctx context.Context) (position, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return h.topicVersions(ctx)
}

func (h *Hub) topicVersions(ctx context.Context) (position, error) {
	at := position{}
	for _, t := range h.topics {
		version, err := t.Version(ctx)
		if err != nil {
			return nil, err
		}
		at = append(at, topicVersion{t.Name, version})
	}
	return at, nil
}

// topicVersion is the version of a topic.
type topicVersion struct {
	topic   string
	version int64
}

// position is a version for each topic; nil if it is not known.
type position []topicVersion

// String returns the position as the id of an event carries it.
func (p position) String() string {
	var words []string
	for _, m := range p {
		words = append(words, m.topic+":"+strconv.FormatInt(m.version, 10))
	}
	return strings.Join(words, ",")
}

// maxPosition bounds the text of a position, in bytes.
const maxPosition = 1000

// parsePosition reads the text that String writes. Any other text becomes a position without known topics, so that its
// client is notified of all of them; "" becomes nil.
func parsePosition(text string) position {
	if text == "" {
		return nil
	}
	p := position{}
	if len(text) > maxPosition {
		return p
	}
	for word := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(word, ":")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil {
			p = append(p, topicVersion{name, version})
		}
	}
	return p
}

// since lists the versions that are not in the earlier position.
func (p position) since(earlier position) (changed position) {
	for _, m := range p {
		if !slices.Contains(earlier, m) {
			changed = append(changed, m)
		}
	}
	return changed
}
