// Package stdio serves MCP over newline-delimited JSON-RPC, as a client speaks it that spawns the server.
//
// It replaces mcp-go's own stdio server around the same MCPServer.HandleMessage, because a door to repositories must
// not lose an answer or an attempt: calls in flight are finished at the end of input, messages are bounded, progress
// comes before the answer it belongs to, cancelled calls are not answered, and every refused message is reported.
package stdio

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/mcpio"
)

// Serve answers the messages of in on out until in ends, ctx ends or out breaks, and returns nil in each of these
// cases after the calls in flight were given their time:
//
//   - At the end of input, queued and running calls go on for DrainTimeout and are answered.
//   - When ctx ends (the caller ties it to SIGINT and SIGTERM), also during a drain, queued calls are refused and
//     running ones go on for ShutdownTimeout. Their contexts do not end with ctx.
//   - When out breaks, or Options.Gone is closed, contexts end at once with ErrClientGone, queued calls are dropped,
//     and handlers that go on regardless, because a write to a repository is under way, have DrainTimeout. The caller
//     must keep SIGPIPE from ending the process (signal.Ignore or signal.Notify) if out is the standard output.
//
// When the time is over, contexts end with errShutdown, handlers have another second to return, and calls that still
// run are answered with an error and left behind.
//
// An error means that in could not be read, that out broke for a reason other than a reader that has gone, or that srv
// already serves a connection with the same Options.Session. Apart from handlers left behind, one goroutine may outlive
// Serve when ctx ended or out broke: a Read of in that cannot be interrupted because in has no SetReadDeadline that
// works; what it still reads is not processed. A Write that blocks for good is left behind in the same way.
//
// tools/call and resources/read run on workers, everything else in order in the loop, so that a ping is answered while
// calls run.
func Serve(ctx context.Context, in io.Reader, out io.Writer, srv *server.MCPServer, opts Options) error {
	l := newLoop(ctx, out, srv, opts)
	return l.runLoop(ctx, func() error {
		go l.out.writeLoop()
		return l.readMessages(ctx, in)
	})
}

// runLoop answers what read hands to handle, until it returns. read starts the writer.
func (l *loop) runLoop(ctx context.Context, read func() error) error {
	srv := l.srv
	defer l.cut(errShutdown)
	if err := srv.RegisterSession(l.base, l.connection); err != nil {
		return fmt.Errorf("start a stdio session: %w", err)
	}
	defer srv.UnregisterSession(context.WithoutCancel(l.base), l.connection.SessionID())

	stop := context.AfterFunc(ctx, func() { l.end.limitTo(l.opts.ShutdownTimeout) })
	defer stop()
	readErr := read()
	l.drain(ctx)
	return errors.Join(readErr, l.finishWriting())
}

// loop is one run of Serve.
type loop struct {
	srv        *server.MCPServer
	opts       Options
	log        *slog.Logger
	connection *connection
	out        *writer
	calls      *scheduler
	end        *ending
	base       context.Context // the parent of every call's context; outlives the context of Serve
	cut        context.CancelCauseFunc
}

func newLoop(ctx context.Context, out io.Writer, srv *server.MCPServer, opts Options) *loop {
	opts = opts.withDefaults()
	l := &loop{srv: srv, opts: opts, log: opts.Logger, connection: newConnection(opts.Session)}
	l.base, l.cut = context.WithCancelCause(srv.WithContext(context.WithoutCancel(ctx), l.connection))
	l.end = newEnding(func() { l.cut(errShutdown) })
	l.out = newWriter(out, l.connection.notes, l.end.gone, l.log)
	l.calls = newScheduler(opts, l.execute)
	return l
}

// readMessages handles line after line. The error is that of in.
func (l *loop) readMessages(ctx context.Context, in io.Reader) error {
	lines := readLines(in, l.opts.MaxMessage)
	defer lines.stop()
	return l.handleLines(ctx, lines.ready)
}

// handleLines handles what is ready, in order, until there is an error.
func (l *loop) handleLines(ctx context.Context, ready <-chan lineOrError) error {
	for ctx.Err() == nil {
		select {
		case line := <-ready:
			if errors.Is(line.err, io.EOF) {
				return nil
			}
			if line.err != nil {
				return fmt.Errorf("read MCP messages: %w", line.err)
			}
			l.handle(line.frame)
		case <-ctx.Done():
		case <-l.out.failed:
			return nil
		case <-l.opts.Gone:
			return nil
		}
	}
	return nil
}

func (l *loop) handle(f frame) {
	if !f.tooLong && len(bytes.Trim(f.raw, " \t\r")) == 0 {
		return
	}
	env, refused := l.inspected(f)
	env.id, env.to = env.id.withScope(f.scope), f.to
	if f.to == nil {
		env.to = l.out
	}
	if refused == nil && mcpio.MayTakeLong(env.method) {
		l.submit(f, env)
		return
	}
	defer env.to.endOutput()
	switch {
	case refused != nil:
		l.rejectMessage(env, f.size, *refused)
	case env.response:
		l.log.Debug("a response to no request of ours was ignored")
	case env.method == string(mcp.MethodNotificationCancelled) && !env.idGiven:
		l.cancelled(env.params.cancels)
	default:
		if line := l.answered(f.raw, env); line != nil {
			env.to.deliver(line) // after its turn: it may wait for a client that does not read
		}
	}
}

// inspected is inspect, on a stack that is given back.
func (l *loop) inspected(f frame) (env envelope, refused *messageRejection) {
	l.opts.Turns.Do(func() {
		env, refused = inspect(f, l.opts.MaxMessage,
			func(id requestID) bool { return l.calls.inFlight(id.withScope(f.scope)) })
	})
	return env, refused
}

// answered returns the line that answers a message; nil for one without an id.
func (l *loop) answered(raw []byte, env envelope) (line []byte) {
	l.opts.Turns.Do(func() {
		l.dispatchMessage(l.base, raw, env, func(r rpcReply) {
			if env.idGiven {
				line = l.encodeReply(env.id, r)
			}
		})
	})
	return line
}

// drain waits for the calls in flight within the limits that Serve documents.
func (l *loop) drain(ctx context.Context) {
	idle := l.calls.close()
	l.end.limitTo(l.opts.DrainTimeout)
	stopping, failed, gone := ctx.Done(), l.out.failed, l.opts.Gone
	for {
		select {
		case <-idle:
			return
		case <-l.end.gone:
			return
		case <-stopping:
			stopping = nil
		case <-failed:
			failed = nil
			l.calls.cancelAll(ErrClientGone)
		case <-gone:
			gone = nil
			l.calls.cancelAll(ErrClientGone)
		}
		for _, c := range l.calls.dropQueued() {
			l.drop(c)
			c.env.to.endOutput()
		}
	}
}

// finishWriting ends the writer after its last line and returns its error, unless the error only says that the reader
// is gone.
func (l *loop) finishWriting() error {
	close(l.out.quit)
	defer l.end.cancelLimits()
	select {
	case <-l.out.done:
	case <-l.end.gone:
		return nil
	}
	err := l.out.err
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return fmt.Errorf("write MCP messages: %w", err)
}

// Causes with which the context of a call ends (context.Cause).
var (
	// ErrCancelledByClient: the client sent notifications/cancelled; it will get no answer.
	ErrCancelledByClient = errors.New("the client cancelled the request")
	// ErrClientGone: the output is broken, so that no answer can arrive.
	ErrClientGone = errors.New("the client has gone")
	// errShutdown: the time for calls in flight after the end of input or a shutdown is over.
	errShutdown = errors.New("the server has to stop")
)

// Options of Serve. The zero value gives the defaults; a number of zero or less does too.
type Options struct {
	// Session tells connections of one server apart. Default "stdio".
	Session string
	// Logger gets refusals, panics and replaced errors, never the content of a message. Default: none.
	Logger *slog.Logger
	// Turns bounds how many messages that wait for no other machine are answered at a time, by all connections that share
	// it, and gives their stacks back. nil: no bound.
	Turns mcpio.Turns
	// MaxMessage is the largest message in bytes, line ending excluded. Default 4 MiB.
	MaxMessage int
	// Workers limits the tool calls that run concurrently. Default 4.
	Workers int
	// QueueLimit limits the tool calls that wait for a worker; waiting calls of more than four times MaxMessage in all
	// also count as a full queue. Default 64.
	QueueLimit int
	// DrainTimeout limits how long calls, queued ones included, may go on after the end of input. Default 30 s.
	DrainTimeout time.Duration
	// ShutdownTimeout limits how long calls that have started may go on after the context of Serve ended. Default 5 s.
	ShutdownTimeout time.Duration
	// Gone is closed when the client has gone for good; it counts as an output that broke. nil: only the output says so.
	Gone <-chan struct{}
	// OnReject is called for every message that is refused and of every tools/call that got no tool result, before the
	// client is answered. It is called from several goroutines, also after the context of Serve ended, and must return
	// promptly, since the loop waits for it. The context carries the client session. A call whose handler panicked or
	// returned a Go error is reported too (ReasonInternal), whether or not the handler kept a record of its own.
	OnReject func(ctx context.Context, r Rejection)
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Session = cmp.Or(o.Session, "stdio")
	o.MaxMessage = orDefault(o.MaxMessage, 4<<20)
	o.Workers = orDefault(o.Workers, 4)
	o.QueueLimit = orDefault(o.QueueLimit, 64)
	o.DrainTimeout = orDefault(o.DrainTimeout, 30*time.Second)
	o.ShutdownTimeout = orDefault(o.ShutdownTimeout, 5*time.Second)
	return o
}

func orDefault[T int | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// ServeExchanges is Serve for a transport whose messages each have their own reply writer: the same loop, with the same
// bounds and the same record of refused messages. Notifications to all clients go to notes, and tagged to those calls
// of subscriptions/listen that asked for them. It ends as Serve does; input ends when messages is closed.
func ServeExchanges(ctx context.Context, messages <-chan mcpio.Exchange, notes io.Writer, srv *server.MCPServer,
	opts Options) error {
	l := newLoop(ctx, notes, srv, opts)
	l.out.also = l.tellStreams
	return l.runLoop(ctx, func() error {
		l.receive(ctx, messages)
		go l.out.writeLoop() // what comes while calls end
		return nil
	})
}

// receive handles exchanges until messages is closed, ctx ends or the client disconnects. It writes notifications
// itself, since their writer need not be waited for: a connection that is idle has no second goroutine.
func (l *loop) receive(ctx context.Context, messages <-chan mcpio.Exchange) {
	var scope uint64
	for ctx.Err() == nil {
		select {
		case x, more := <-messages:
			if !more {
				return
			}
			if x.Alone {
				scope++
			}
			l.exchange(x, scope)
		case note := <-l.out.notes:
			l.out.writeNotification(note)
		case <-ctx.Done():
		case <-l.out.failed:
			return
		case <-l.opts.Gone:
			return
		}
	}
}

// exchange handles one exchange. scope is for those whose ids mean something in them only.
func (l *loop) exchange(x mcpio.Exchange, scope uint64) {
	f := frame{raw: x.Message, size: max(x.Size, int64(len(x.Message))), tooLong: x.Size > int64(len(x.Message)),
		to: exchangeOutlet{x}, until: x.Context}
	if x.Alone {
		f.scope = scope
	}
	l.handle(f)
}

// exchangeOutlet is the outlet of an exchange.
type exchangeOutlet struct{ mcpio.Exchange }

func (s exchangeOutlet) deliver(line []byte) { s.Say(line) }
func (s exchangeOutlet) endOutput()          { s.End() }

// tellStreams passes a notification on to the streams whose clients asked for it, each tagged with the id of its
// request.
func (l *loop) tellStreams(note mcp.JSONRPCNotification) {
	if note.Method != mcp.MethodNotificationToolsListChanged {
		return
	}
	for _, c := range l.calls.openStreams() {
		if filter, active := c.connection.SubscriptionFilter(); !active || !filter.ToolsListChanged {
			continue
		}
		tagged := note
		tagged.Params.Meta = maps.Clone(note.Params.Meta)
		if tagged.Params.Meta == nil {
			tagged.Params.Meta = map[string]any{}
		}
		tagged.Params.Meta[mcp.MetaKeySubscriptionID] = c.env.id.json()
		select {
		case c.connection.notes <- tagged:
		default: // a reader with that many unread notifications is reached by the next one
		}
	}
}

const (
	unwindTime = time.Second // for handlers to return after their contexts were cancelled
	flushTime  = time.Second // for the last answers to be written
)

// ending bounds the end of a connection. When a limit set by within is reached, in this order: cut is called, which
// cancels all calls; after unwindTime abandon is closed and handlers that still run are left behind; after flushTime
// gone is closed and all waiting ends.
type ending struct {
	cut     func()
	abandon chan struct{}
	gone    chan struct{}

	mu      sync.Mutex
	once    sync.Once
	timers  []*time.Timer
	stopped bool
}

func newEnding(cut func()) *ending {
	return &ending{cut: cut, abandon: make(chan struct{}), gone: make(chan struct{})}
}

// limitTo sets a limit. The earliest of several limits counts.
func (e *ending) limitTo(limit time.Duration) {
	e.schedule(limit, func() {
		e.once.Do(func() {
			e.cut()
			e.schedule(unwindTime, func() {
				close(e.abandon)
				e.schedule(flushTime, func() { close(e.gone) })
			})
		})
	})
}

func (e *ending) schedule(d time.Duration, do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.timers = append(e.timers, time.AfterFunc(d, do))
	}
}

// cancelLimits calls the limits off.
func (e *ending) cancelLimits() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, t := range e.timers {
		t.Stop()
	}
}
