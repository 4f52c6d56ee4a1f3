package stdio

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

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
	// Logger gets refusals, panics and replaced errors, never the content of a message. Default: none.
	Logger *slog.Logger
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
