package stdio

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"
)

// submit hands a request to the scheduler. Its context carries a connection of its own and ends when the client cancels
// it or the time of the server is over, not when the server is merely asked to stop.
func (l *loop) submit(f frame, env envelope) {
	own := newCallConnection(l.connection)
	ctx, cancel := context.WithCancelCause(l.srv.WithContext(l.base, own))
	c := &call{
		env: env, raw: f.raw, ctx: ctx, cancel: cancel, connection: own,
		stream: env.method == string(mcp.MethodSubscriptionsListen),
	}
	if f.until != nil {
		stop := context.AfterFunc(f.until, func() { l.cancelled(env.id) })
		context.AfterFunc(ctx, func() { stop() })
	}
	if !l.calls.admit(c) {
		defer env.to.end()
		cancel(nil)
		l.refuse(env, f.size, refusal{reason: ReasonBusy, code: codeServer, id: env.id,
			message: "The server is busy with other calls; wait for one of them to finish and send this one again."})
	}
}

// execute runs one call to its answer.
func (l *loop) execute(c *call) {
	defer l.calls.done(c)
	defer c.env.to.end()
	// The base ends before the contexts of the calls do, one after the other: the first call that ends may return and give
	// its place to this one in between.
	if l.base.Err() != nil || c.ctx.Err() != nil {
		l.skip(c)
		return
	}
	done := make(chan reply, 1)
	go l.ask(c.ctx, c.raw, c.env, func(r reply) { done <- r })
	answer := l.await(c, done)
	if answer.refused != "" && c.env.method == string(mcp.MethodToolsCall) {
		l.report(c.env, int64(len(c.raw)), answer.refused, answer.err.Message)
	}
	if l.calls.leave(c) {
		l.send(c.env, answer)
	}
}

// await passes notifications on until the handler is done, so that all of them come before the answer. What the
// handler sends after its return is never read. A handler that outlasts the end of the server is left behind.
func (l *loop) await(c *call, done <-chan reply) reply {
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
			return failure(codeServer, textCutOff, ReasonShutdown)
		}
	}
}

// sendNote writes a notification of a call that the client still waits for.
func (l *loop) sendNote(c *call, note mcp.JSONRPCNotification) {
	if errors.Is(context.Cause(c.ctx), ErrCancelledByClient) {
		return
	}
	line, err := encodeLine(note)
	if err != nil {
		l.log.Error("cannot encode a notification", slog.String("method", note.Method), slog.Any("error", err))
		return
	}
	c.env.to.send(line)
}

// skip answers a call that was cancelled before it started.
func (l *loop) skip(c *call) {
	if l.calls.leave(c) {
		l.drop(c)
		return
	}
	l.reportCancelled(c)
}

// drop refuses a call that the end of the server overtook.
func (l *loop) drop(c *call) {
	l.refuse(c.env, int64(len(c.raw)),
		refusal{reason: ReasonShutdown, code: codeServer, message: textShutdown, id: c.env.id})
}

// cancelled ends a call that the client takes back.
func (l *loop) cancelled(id requestID) {
	if c := l.calls.cancelByClient(id); c != nil { // it was queued, and will not run
		l.reportCancelled(c)
		c.env.to.end()
	}
}

func (l *loop) reportCancelled(c *call) {
	l.refuse(c.env, int64(len(c.raw)),
		refusal{reason: ReasonCancelled, message: "The client cancelled the call before it started.", silent: true})
}
