// Package stdio serves MCP over newline-delimited JSON-RPC, as a client speaks it that spawns the server.
//
// It replaces mcp-go's own stdio server around the same MCPServer.HandleMessage, because a door to repositories must
// not lose an answer or an attempt: calls in flight are finished at the end of input, messages are bounded, progress
// comes before the answer it belongs to, cancelled calls are not answered, and every refused message is reported.
package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
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
// already serves a stdio connection. Apart from handlers left behind, one goroutine may outlive Serve when ctx ended or
// out broke: a Read of in that cannot be interrupted because in has no SetReadDeadline that works; what it still reads
// is not processed. A Write that blocks for good is left behind in the same way.
//
// tools/call and resources/read run on workers, everything else in order in the loop, so that a ping is answered while
// calls run.
func Serve(ctx context.Context, in io.Reader, out io.Writer, srv *server.MCPServer, opts Options) error {
	l := newLoop(ctx, out, srv, opts)
	return l.serve(ctx, func() error { return l.read(ctx, in) })
}

// serve answers what read hands to handle, until it returns.
func (l *loop) serve(ctx context.Context, read func() error) error {
	srv := l.srv
	defer l.cut(errShutdown)
	if err := srv.RegisterSession(l.base, l.connection); err != nil {
		return fmt.Errorf("start a stdio session: %w", err)
	}
	defer srv.UnregisterSession(context.WithoutCancel(l.base), l.connection.SessionID())

	go l.out.run()
	stop := context.AfterFunc(ctx, func() { l.end.within(l.opts.ShutdownTimeout) })
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
	l := &loop{srv: srv, opts: opts, log: opts.Logger, connection: newConnection()}
	l.base, l.cut = context.WithCancelCause(srv.WithContext(context.WithoutCancel(ctx), l.connection))
	l.end = newEnding(func() { l.cut(errShutdown) })
	l.out = newWriter(out, l.connection.notes, l.end.gone, l.log)
	l.calls = newScheduler(opts, l.execute)
	return l
}

// read handles line after line. The error is that of in.
func (l *loop) read(ctx context.Context, in io.Reader) error {
	lines := readLines(in, l.opts.MaxMessage)
	defer lines.stop()
	return l.take(ctx, lines.ready)
}

// take handles what is ready, in order, until there is an error.
func (l *loop) take(ctx context.Context, ready <-chan lineOrError) error {
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
	env, refused := inspect(f, l.opts.MaxMessage, func(id requestID) bool { return l.calls.inFlight(id.within(f.scope)) })
	env.id, env.to = env.id.within(f.scope), f.to
	if f.to == nil {
		env.to = l.out
	}
	if refused == nil && slices.Contains(asksForLong(), env.method) {
		l.submit(f, env)
		return
	}
	defer env.to.end()
	switch {
	case refused != nil:
		l.refuse(env, f.size, *refused)
	case env.response:
		l.log.Debug("a response to no request of ours was ignored")
	case env.method == string(mcp.MethodNotificationCancelled) && !env.idGiven:
		l.cancelled(env.params.cancels)
	default:
		l.ask(l.base, f.raw, env, func(r reply) {
			if env.idGiven {
				l.send(env, r)
			}
		})
	}
}

// asksForLong returns the methods that may ask other machines: other requests are answered meanwhile.
func asksForLong() []string {
	return []string{
		string(mcp.MethodToolsCall), string(mcp.MethodResourcesRead), string(mcp.MethodPromptsGet),
		string(mcp.MethodSubscriptionsListen),
	}
}

// drain waits for the calls in flight within the limits that Serve documents.
func (l *loop) drain(ctx context.Context) {
	idle := l.calls.close()
	l.end.within(l.opts.DrainTimeout)
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
			c.env.to.end()
		}
	}
}

// finishWriting ends the writer after its last line and returns its error, unless the error only says that the reader
// is gone.
func (l *loop) finishWriting() error {
	close(l.out.quit)
	defer l.end.stop()
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
