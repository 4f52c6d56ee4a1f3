package stdio

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// submit hands a request to the scheduler. Its context carries a connection of its own and ends when the client cancels
// it or the time of the server is over, not when the server is merely asked to stop.
func (l *loop) submit(f frame, env envelope) {
	own := newCallConnection(l.connection)
	ctx, cancel := context.WithCancelCause(l.srv.WithContext(l.base, own))
	c := &runningCall{
		env: env, raw: f.raw, ctx: ctx, cancel: cancel, connection: own,
		stream: env.method == string(mcp.MethodSubscriptionsListen),
	}
	if f.until != nil {
		stop := context.AfterFunc(f.until, func() { l.cancelled(env.id) })
		context.AfterFunc(ctx, func() { stop() })
	}
	if !l.calls.admit(c) {
		defer env.to.endOutput()
		cancel(nil)
		l.rejectMessage(env, f.size, messageRejection{reason: ReasonBusy, code: codeServer, id: env.id,
			message: "The server is busy with other calls; wait for one of them to finish and send this one again."})
	}
}

// execute runs one call to its answer.
func (l *loop) execute(c *runningCall) {
	defer l.calls.done(c)
	defer c.env.to.endOutput()
	// The base ends before the contexts of the calls do, one after the other: the first call that ends may return and give
	// its place to this one in between.
	if l.base.Err() != nil || c.ctx.Err() != nil {
		l.skip(c)
		return
	}
	done := make(chan rpcReply, 1)
	go l.dispatchMessage(c.ctx, c.raw, c.env, func(r rpcReply) { done <- r })
	answer := l.await(c, done)
	if answer.refused != "" && c.env.method == string(mcp.MethodToolsCall) {
		l.report(c.env, int64(len(c.raw)), answer.refused, answer.err.Message)
	}
	if l.calls.endFlight(c) {
		l.reply(c.env, answer)
	}
}

// await passes notifications on until the handler is done, so that all of them come before the answer. What the
// handler sends after its return is never read. A handler that outlasts the end of the server is left behind.
func (l *loop) await(c *runningCall, done <-chan rpcReply) rpcReply {
	for {
		select {
		case note := <-c.connection.notes:
			l.sendNote(c, note)
		case answer := <-done:
			for range len(c.connection.notes) {
				l.sendNote(c, <-c.connection.notes)
			}
			return answer
		case <-l.end.abandon:
			return errorReply(codeServer, textCutOff, ReasonShutdown)
		}
	}
}

// sendNote writes a notification of a call that the client still waits for.
func (l *loop) sendNote(c *runningCall, note mcp.JSONRPCNotification) {
	if errors.Is(context.Cause(c.ctx), ErrCancelledByClient) {
		return
	}
	line, err := encodeLine(note)
	if err != nil {
		l.log.Error("cannot encode a notification", slog.String("method", note.Method), slog.Any("error", err))
		return
	}
	c.env.to.deliver(line)
}

// skip answers a call that was cancelled before it started.
func (l *loop) skip(c *runningCall) {
	if l.calls.endFlight(c) {
		l.drop(c)
		return
	}
	l.reportCancelled(c)
}

// drop refuses a call that the end of the server overtook.
func (l *loop) drop(c *runningCall) {
	l.rejectMessage(c.env, int64(len(c.raw)),
		messageRejection{reason: ReasonShutdown, code: codeServer, message: textShutdown, id: c.env.id})
}

// cancelled ends a call that the client takes back.
func (l *loop) cancelled(id requestID) {
	if c := l.calls.cancelByClient(id); c != nil { // it was queued, and will not run
		l.reportCancelled(c)
		c.env.to.endOutput()
	}
}

func (l *loop) reportCancelled(c *runningCall) {
	l.rejectMessage(c.env, int64(len(c.raw)),
		messageRejection{reason: ReasonCancelled, message: "The client cancelled the call before it started.", silent: true})
}

const (
	// queuedMessages bounds the bytes of waiting calls, in units of Options.MaxMessage, so that a full queue of
	// messages of full size cannot take hundreds of megabytes.
	queuedMessages = 4
	// maxStreams bounds subscriptions/listen requests that are open at a time; they do not count as workers.
	maxStreams = 4
)

// runningCall is a request that runs beside the loop.
type runningCall struct {
	env        envelope
	raw        []byte
	ctx        context.Context
	cancel     context.CancelCauseFunc
	connection *callConnection
	stream     bool // subscriptions/listen: stays open until it is cancelled
	muted      bool // the client cancelled it and expects no answer; guarded by scheduler.mu
}

// scheduler starts calls, at most workers at a time, first come first served, and knows which ids are in flight.
type scheduler struct {
	run        func(*runningCall) // executes a call; ends with leave and done
	workers    int
	queueLimit int
	byteLimit  int

	mu          sync.Mutex
	inFlightIDs map[requestID]*runningCall
	queue       []*runningCall
	queuedBytes int
	running     int
	streams     int
	closed      bool
	idle        chan struct{} // closed when closed is set and nothing is left to run
}

func newScheduler(opts Options, run func(*runningCall)) *scheduler {
	return &scheduler{
		run: run, workers: opts.Workers, queueLimit: opts.QueueLimit, byteLimit: queuedMessages * opts.MaxMessage,
		inFlightIDs: make(map[requestID]*runningCall), idle: make(chan struct{}),
	}
}

// admit starts or queues c, whose id must not be in flight. It returns false if there is no room.
func (s *scheduler) admit(c *runningCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.stream && s.streams < maxStreams:
		s.streams++
		go s.run(c)
	case c.stream:
		return false
	case s.running < s.workers:
		s.running++
		go s.run(c)
	case len(s.queue) < s.queueLimit && s.queuedBytes+len(c.raw) <= s.byteLimit:
		s.queue = append(s.queue, c)
		s.queuedBytes += len(c.raw)
	default:
		return false
	}
	s.inFlightIDs[c.env.id] = c
	return true
}

// inFlight tells whether a queued or running call has the id.
func (s *scheduler) inFlight(id requestID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.inFlightIDs[id]
	return ok
}

// cancelByClient cancels the call and silences it. If it was still queued, it comes back and will not run; a call
// that runs, or an unknown id, gives nil.
func (s *scheduler) cancelByClient(id requestID) *runningCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.inFlightIDs[id]
	if !ok {
		return nil
	}
	c.muted = true
	c.cancel(ErrCancelledByClient)
	at := slices.Index(s.queue, c)
	if at < 0 {
		return nil
	}
	s.queue = slices.Delete(s.queue, at, at+1)
	s.queuedBytes -= len(c.raw)
	delete(s.inFlightIDs, id)
	return c
}

// endFlight ends the flight of c's id, so that a late cancellation finds nothing, and tells whether to answer.
func (s *scheduler) endFlight(c *runningCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlightIDs, c.env.id)
	return !c.muted
}

// done gives c's place to the next call. It comes after c's answer was handed over.
func (s *scheduler) done(c *runningCall) {
	c.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.stream:
		s.streams--
	case len(s.queue) > 0:
		next := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.queuedBytes -= len(next.raw)
		go s.run(next)
	default:
		s.running--
	}
	s.closeIfIdle()
}

// close ends the streams and returns a channel that is closed when every call is done. Nothing may be admitted after.
func (s *scheduler) close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.inFlightIDs {
		if c.stream {
			c.cancel(errShutdown)
		}
	}
	s.closeIfIdle()
	return s.idle
}

func (s *scheduler) closeIfIdle() {
	if s.closed && s.running == 0 && s.streams == 0 {
		close(s.idle)
	}
}

// openStreams returns the calls of subscriptions/listen that are open.
func (s *scheduler) openStreams() (open []*runningCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inFlightIDs {
		if c.stream {
			open = append(open, c)
		}
	}
	return open
}

// dropQueued takes every waiting call out; they will not run.
func (s *scheduler) dropQueued() []*runningCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := s.queue
	s.queue, s.queuedBytes = nil, 0
	for _, c := range dropped {
		c.cancel(errShutdown)
		delete(s.inFlightIDs, c.env.id)
	}
	return dropped
}

// cancelAll cancels every call in flight.
func (s *scheduler) cancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inFlightIDs {
		c.cancel(cause)
	}
}
