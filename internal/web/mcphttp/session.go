package mcphttp

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// Bounds of one session.
const (
	maxAtOnce   = 64      // requests under way; more wait for Limits.Wait, and are refused then
	maxKept     = 32      // streams that have ended and can be asked for again
	maxKeptSize = 2 << 20 // bytes of them
	// bytes of those that were written whole: a client asks for them only if what was written last was lost on its way.
	// The newest is kept whatever it has.
	maxWrittenSize = 4 << 10
)

// session is a connection of an agent: that of one client, or of all requests of a token that stand for themselves.
type session struct {
	id       string // "" for the latter
	holder   string // of the token
	budget   *gateway.Budget
	limits   Limits
	now      func() time.Time
	messages chan mcpio.Exchange
	ending   chan struct{} // closed when nothing more is taken in
	over     chan struct{} // closed when nothing is answered any more
	general  *stream       // unsolicited notifications

	mu       sync.Mutex
	version  string // that was agreed on
	closed   bool   // nothing more is taken in
	sending  sync.WaitGroup
	busy     int           // requests and streams that are open
	standing int           // those of busy that wait for unsolicited notifications alone
	freed    chan struct{} // closed, and made anew, when busy falls
	begun    time.Time
	used     time.Time
	idle     *time.Timer
	last     int       // id of the newest stream
	streams  []*stream // that can be asked for again, the oldest first
}

// openSession begins a session for an agent that has shown its token.
func (s *Server) openSession(req *httpx.Request, h holder, id string) (*session, error) {
	tokens := s.options.Tokens
	if !tokens.Enter() {
		return nil, fault.New(fault.LimitReached, "too many agents are connected")
	}
	var arrival gateway.AuthenticatedConn
	var done func()
	var refused *fault.Error
	s.turns.Do(func() {
		arrival, done, refused = tokens.Count(req.Context(), h.secret, way, s.options.Guard.Client(req.Request))
	})
	if refused != nil {
		tokens.Leave()
		return nil, refused
	}
	n := &session{
		id: id, holder: h.id, budget: arrival.Budget, limits: s.options.Limits, now: s.options.Now,
		messages: make(chan mcpio.Exchange), ending: make(chan struct{}), over: make(chan struct{}), general: newStream(0),
		begun: time.Now(), used: time.Now(), freed: make(chan struct{}),
	}
	n.mu.Lock() // endIfIdle waits until idle is set
	n.idle = time.AfterFunc(n.limits.Idle, n.endIfIdle)
	n.mu.Unlock()
	go func() {
		stop := context.AfterFunc(s.ctx, n.shutDown)
		defer stop()
		_ = tokens.Host().ServeExchanges(s.ctx, arrival, n.messages, n.general) // it is in the log
		s.dropSession(n)
		done()
		tokens.Leave()
		close(n.over) // now that it no longer counts: a request may wait for its place
		n.shutDown()
	}()
	return n, nil
}

// registerSession begins a session of a client.
func (s *Server) registerSession(req *httpx.Request, h holder) (*session, error) {
	n, err := s.makeRoom(req, h, rand.Text())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[n.id] = n
	return n, nil
}

// makeRoom opens a session. Where the token has too many, those that have been idle longest end first, one at a time.
func (s *Server) makeRoom(req *httpx.Request, h holder, id string) (*session, error) {
	for {
		n, err := s.openSession(req, h, id)
		if fault.CodeOf(err) != fault.LimitReached {
			return n, err
		}
		old := s.longestIdle(h)
		if old == nil {
			return nil, err
		}
		old.shutDown()
		select {
		case <-old.over:
		case <-req.Context().Done():
			return nil, fault.From(req.Context().Err())
		}
	}
}

// longestIdle returns the session of a token that has no request under way and was used longest ago; nil if there is
// none. The connection of requests that stand for themselves is one of them.
func (s *Server) longestIdle(h holder) (oldest *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.sessions))
	if n := s.stateless[h.id]; n != nil {
		all = append(all, n)
	}
	var since time.Time
	for _, n := range all {
		if used, busy := n.lastUse(); n.holder == h.id && !busy && (oldest == nil || used.Before(since)) {
			oldest, since = n, used
		}
	}
	return oldest
}

// shared returns the connection of a token for requests that stand for themselves.
func (s *Server) shared(req *httpx.Request, h holder) (*session, error) {
	s.mu.Lock()
	n := s.stateless[h.id]
	if n != nil && n.isOld() {
		delete(s.stateless, h.id)
		n.shutDown()
		n = nil
	}
	s.mu.Unlock()
	if n != nil {
		return n, nil
	}
	n, err := s.makeRoom(req, h, "")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.stateless[h.id]; other != nil { // another request was faster
		go n.shutDown()
		return other, nil
	}
	s.stateless[h.id] = n
	return n, nil
}

func (s *Server) dropSession(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.id != "" {
		delete(s.sessions, n.id)
	} else if s.stateless[n.holder] == n {
		delete(s.stateless, n.holder)
	}
}

// findSession returns the session that a request names, if it is one of the token's. foreign: it is another token's.
func (s *Server) findSession(id string, h holder) (n *session, foreign bool) {
	s.mu.Lock()
	n = s.sessions[id]
	s.mu.Unlock()
	if n == nil {
		return nil, false
	}
	if n.holder != h.id {
		return nil, true
	}
	return n, false
}

// shutDown takes in nothing more; what was taken in is answered.
func (n *session) shutDown() {
	n.mu.Lock()
	closed := n.closed
	n.closed = true
	n.mu.Unlock()
	if closed {
		return
	}
	close(n.ending)
	n.idle.Stop()
	go func() {
		n.sending.Wait()
		close(n.messages)
	}()
}

func (n *session) endIfIdle() {
	n.mu.Lock()
	left := n.limits.Idle - time.Since(n.used)
	if n.busy > 0 {
		left = n.limits.Idle
	}
	if left > 0 && !n.closed {
		n.idle.Reset(left)
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	n.shutDown()
}

// isOld reports whether a connection is to be exchanged for another one: it takes nothing more in, since it was idle or
// cut off; or it is not in use, and the next one reads the operator's rules anew.
func (n *session) isOld() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed || n.busy == 0 && time.Since(n.begun) > n.limits.Renew
}

func (n *session) lastUse() (at time.Time, busy bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used, n.busy > n.standing
}

// errBusy says that a session has as many requests under way as it may have.
var errBusy = fault.New(fault.LimitReached, //nolint:gochecknoglobals // a constant
	"%d requests of this agent are under way; wait for one of them to finish, then send this one again", maxAtOnce)

// use counts a request or a stream in until left is called. Where too many are under way it waits for one to end, for
// Limits.Wait; the error is errBusy then.
func (n *session) use(ctx context.Context) (left func(), err error) {
	bound, cancel := context.WithTimeout(ctx, n.limits.Wait)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.busy >= maxAtOnce {
		freed := n.freed
		n.mu.Unlock()
		select {
		case <-freed:
		case <-bound.Done():
		}
		n.mu.Lock()
		if bound.Err() != nil && n.busy >= maxAtOnce {
			return nil, errBusy
		}
	}
	n.busy++
	n.used = time.Now()
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.busy--
		n.used = time.Now()
		close(n.freed)
		n.freed = make(chan struct{})
	}), nil
}

// stand counts a stream of unsolicited notifications, which a client keeps open for as long as its session lasts: the
// session is idle beside it. over counts it out.
func (n *session) stand() (over func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.standing++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.standing--
	}
}

// newStream makes the stream for a message.
func (n *session) newStream() *stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return newStream(n.last)
}

// rememberStream remembers a stream, so that the client of a session can ask for it again.
func (n *session) rememberStream(t *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.id != "" {
		n.streams = append(n.streams, t)
		n.evictStreams()
	}
}

// evictStreams lets go of streams that have ended, where they are too many, too large or too old. The caller holds mu.
func (n *session) evictStreams() {
	kept, size, written, now := 0, 0, 0, n.now()
	out := n.streams[:0:0]
	for at := len(n.streams) - 1; at >= 0; at-- { // the newest first
		t := n.streams[at]
		t.mu.Lock()
		ended, bytes, whole := t.ended, t.bytes, t.written
		t.mu.Unlock()
		if !ended.IsZero() {
			kept++
			size += bytes
			if whole {
				written += bytes
			}
			needless := whole && written > max(maxWrittenSize, bytes)
			if needless || kept > maxKept || size > maxKeptSize || now.Sub(ended) > n.limits.Kept {
				continue
			}
		}
		out = append(out, t)
	}
	slices.Reverse(out)
	n.streams = out
}

// streamOf returns a stream that can be asked for again; nil if there is none with the id.
func (n *session) streamOf(id int) *stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id == 0 {
		return n.general
	}
	n.evictStreams()
	for _, t := range n.streams {
		if t.id == id {
			return t
		}
	}
	return nil
}

// hand passes a message to the loop, and returns the stream for its answers. ended is called after the last one.
func (n *session) hand(ctx context.Context, x mcpio.Exchange, ended func()) (*stream, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, gone()
	}
	n.sending.Add(1)
	n.mu.Unlock()
	defer n.sending.Done()
	t := n.newStream()
	x.Say = t.appendLine
	x.End = func() {
		t.markComplete(n.now())
		ended()
	}
	select {
	case n.messages <- x:
		return t, nil
	case <-n.over:
		return nil, gone()
	case <-ctx.Done():
		return nil, fault.From(ctx.Err())
	}
}

// agreed remembers the version that was agreed on.
func (n *session) agreed(version string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version = version
}

// primes reports whether the client of the session knows events without data, which came with 2025-11-25.
func (n *session) primes() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id != "" && n.version >= "2025-11-25"
}

// gone returns the answer about a session that is over, as the specification has it (404): the client begins another
// one.
func gone() error {
	return fault.New(fault.NotFound, "this token has no such session, or it is over; begin another one with initialize")
}
