package transport

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// deadline is a try's context with the limits of its kind.
type deadline struct {
	ctx      context.Context
	whole    time.Duration // that the try may take
	answered func()        // the header is there: from now on only whole counts
}

// errNoHeader ends a read whose answer did not begin in time.
var errNoHeader = errors.New("no header in time")

// withDeadline bounds one try. A write is only bounded as a whole: a slow server cannot be distinguished from a dead
// one, and after an early end the outcome of the write would be unknown.
func (t *Transport) withDeadline(parent context.Context, c *call) (deadline, context.CancelFunc) {
	if !c.safe {
		ctx, cancel := context.WithTimeout(parent, t.opt.Limits.Write)
		return deadline{ctx, t.opt.Limits.Write, func() {}}, cancel
	}
	whole, end := context.WithTimeout(parent, t.opt.Limits.Whole)
	ctx, cancel := context.WithCancelCause(whole)
	var answered atomic.Bool
	// It is set when the request has been sent; until then the whole is the limit.
	timer := time.AfterFunc(2*t.opt.Limits.Whole, func() {
		if !answered.Load() {
			cancel(errNoHeader)
		}
	})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { timer.Reset(t.opt.Limits.ResponseHeader) },
	})
	return deadline{ctx, t.opt.Limits.Whole, func() { answered.Store(true); timer.Stop() }}, func() {
		timer.Stop()
		cancel(nil)
		end()
	}
}
