package stdio

import (
	"context"
	"io"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/exchange"
)

// ServeExchanges is Serve for a transport whose messages each have their own reply writer: the same loop, with the same
// bounds and the same record of refused messages. Notifications to all clients go to notes, and tagged to those calls
// of subscriptions/listen that asked for them. It ends as Serve does; input ends when messages is closed.
func ServeExchanges(ctx context.Context, messages <-chan exchange.Exchange, notes io.Writer, srv *server.MCPServer,
	opts Options) error {
	l := newLoop(ctx, notes, srv, opts)
	l.out.also = l.tellStreams
	return l.serve(ctx, func() error { return l.receive(ctx, messages) })
}

// receive handles exchange after exchange.
func (l *loop) receive(ctx context.Context, messages <-chan exchange.Exchange) error {
	ready, stop := make(chan lineOrError), make(chan struct{})
	defer close(stop)
	go func() {
		var scope uint64
		for x := range messages {
			f := frame{raw: x.Message, size: max(x.Size, int64(len(x.Message))), tooLong: x.Size > int64(len(x.Message)),
				to: said{x}, until: x.Context}
			if x.Alone {
				scope++
				f.scope = scope
			}
			select {
			case ready <- lineOrError{frame: f}:
			case <-stop:
				x.End()
				return
			}
		}
		select {
		case ready <- lineOrError{err: io.EOF}:
		case <-stop:
		}
	}()
	return l.take(ctx, ready)
}

// said is the outlet of an exchange.
type said struct{ exchange.Exchange }

func (s said) send(line []byte) { s.Say(line) }
func (s said) end()             { s.End() }

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
