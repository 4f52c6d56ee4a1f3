package connector

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// outbox writes the lines of the loop as server-sent events. It is safe for concurrent use.
type outbox struct {
	control *http.ResponseController
	out     io.Writer
	bound   time.Duration // for each piece of a write

	mu     sync.Mutex
	line   []byte // the beginning of one that is not whole yet
	failed error
}

// newOutbox takes an answer over from the time bounds of its request.
func newOutbox(w io.Writer, bound time.Duration) (*outbox, error) {
	response, ok := w.(http.ResponseWriter)
	if !ok {
		return nil, http.ErrNotSupported
	}
	o := &outbox{control: http.NewResponseController(response), out: w, bound: bound}
	return o, o.control.SetReadDeadline(time.Time{}) // the end of the request's time would end the connection
}

// Write implements io.Writer. p may be a part of a line, or several.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			o.line = append(o.line, rest...)
			break
		}
		o.send([]byte("data: "), o.line, rest[:end], []byte("\n\n"))
		o.line, rest = nil, rest[end+1:]
	}
	if o.failed != nil {
		return 0, o.failed
	}
	return len(p), nil
}

// comment writes what says nothing.
func (o *outbox) comment() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.send([]byte(": still here\n\n"))
	return o.failed
}

// piece is how much is written within the bound, in bytes.
const piece = 64 << 10

// send writes parts and flushes. The deadline is the network's, so it is of the real clock. After a failure nothing is written any more.
func (o *outbox) send(parts ...[]byte) {
	for _, part := range parts {
		for len(part) > 0 && o.failed == nil {
			now := part[:min(len(part), piece)]
			part = part[len(now):]
			if o.failed = o.control.SetWriteDeadline(time.Now().Add(o.bound)); o.failed == nil {
				_, o.failed = o.out.Write(now)
			}
		}
	}
	if o.failed == nil {
		o.failed = o.control.Flush()
	}
}
